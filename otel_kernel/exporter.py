"""Finished spans back to typed trips, inside the process that made them.

Needs the SDK when it is imported.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from otel_kernel import faults
from otel_kernel.mapping import Reject, SpanView, read_span
from otel_kernel.records import Trip
from otel_kernel.sinks import Sink
from otel_kernel.texts import TextFiles

REASONS_LOGGED = 32
"""Different reasons of rejects that are logged; later ones are counted only, so that memory is bounded."""


def view_of(span: ReadableSpan) -> SpanView:
    """Return the parts of a finished span of the SDK that a trip is read from."""
    scope, context = span.instrumentation_scope, span.get_span_context()
    return SpanView(
        scope=scope.name if scope is not None else "",
        attributes=span.attributes or {},
        start_ns=span.start_time or 0,
        trace_id=f"{context.trace_id:032x}" if context is not None else "",
        span_id=f"{context.span_id:016x}" if context is not None else "",
        description=span.status.description or "",
    )


class TripExporter(SpanExporter):
    """Hands the trips among finished spans to `sink.finished`; spans of others are passed over.

    Args:
        sink: takes the trips, on the thread that exports.
        texts: where to look for texts that a span does not carry whole.

    Example:
        >>> provider.add_span_processor(BatchSpanProcessor(TripExporter(sink)))
    """

    def __init__(self, sink: Sink, *, texts: TextFiles | None = None) -> None:
        self._sink = sink
        self._texts = texts
        self._lock = threading.Lock()
        self._reasons: set[str] = set()
        self._rejected = 0
        self._stopped = False

    @property
    def rejected(self) -> int:
        """Number of spans that were trips and could not be read as such any more."""
        return self._rejected

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Hand the trips of a batch on; FAILURE after `shutdown`, or if the sink failed on one."""
        if self._stopped:
            return SpanExportResult.FAILURE
        result = SpanExportResult.SUCCESS
        for span in spans:
            try:
                found = read_span(view_of(span), self._texts)
                if isinstance(found, Trip):
                    self._sink.finished(found)
                elif isinstance(found, Reject):
                    self._count(found)
            except Exception:
                result = SpanExportResult.FAILURE
                faults.caught(f"{type(self._sink).__name__}.finished")
        return result

    def _count(self, reject: Reject) -> None:
        with self._lock:
            self._rejected += 1
            if reject.reason in self._reasons or len(self._reasons) >= REASONS_LOGGED:
                return
            self._reasons.add(reject.reason)
        faults.logger.warning(
            "span %s of trace %s was a trip and cannot be read as one: %s. Said once; `rejected` counts them.",
            reject.span_id,
            reject.trace_id,
            reject.reason,
        )

    def shutdown(self) -> None:
        """Take no more spans."""
        self._stopped = True

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Return true: nothing is held back."""
        return True
