"""What becomes of spans that are sent: counted, and said in the end if some did not arrive.

Needs the SDK when it is imported.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from otel_kernel import faults
from otel_kernel.splitting import SplittingExporter


class CountedProcessor(SpanProcessor):
    """Sends spans in batches as the SDK's processor does, and counts them.

    Args:
        exporter: sends them.
        endpoint: where to, for what is said.
    """

    def __init__(self, exporter: SpanExporter, endpoint: str) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._ended = 0
        self._is_down = False
        self._sent = _CountingExporter(exporter)
        self._batches: SpanProcessor = BatchSpanProcessor(SplittingExporter(self._sent))

    @property
    def dropped(self) -> int:
        """Spans that were never sent: the queue was full, or time was up at the end; until then what is queued."""
        return self._ended - self._sent.handed

    @property
    def refused(self) -> int:
        """Spans that were sent and not taken, however often."""
        return self._sent.handed - self._sent.delivered

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Do what the SDK's processor does."""
        self._batches.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span that has ended."""
        with self._lock:
            if self._pid != os.getpid():  # what was queued before the fork is the parent's
                self._pid = os.getpid()
                self._ended = self._sent.handed = self._sent.delivered = 0
            self._ended += 1
        self._batches.on_end(span)

    def shutdown(self) -> None:
        """Send what is queued, and say how many spans did not arrive."""
        self._batches.shutdown()
        with self._lock:
            dropped, refused, ended = self.dropped, self.refused, self._ended
            is_first, self._is_down = not self._is_down, True
        if is_first and self._pid == os.getpid() and dropped + refused:
            faults.logger.warning(
                "%d of %d spans did not reach %s: %d found the queue full, %d were not taken. A recording has them; "
                "a larger OTEL_BSP_MAX_QUEUE_SIZE holds more.",
                dropped + refused,
                ended,
                self._endpoint,
                dropped,
                refused,
            )

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Send what is queued."""
        return self._batches.force_flush(timeout_millis)


class _CountingExporter(SpanExporter):
    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.handed = 0
        self.delivered = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.handed += len(spans)
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self.delivered += len(spans)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._exporter.force_flush(timeout_millis)
