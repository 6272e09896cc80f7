"""Batches of spans by bytes: the SDK counts spans, receivers count bytes and refuse whole requests.

Needs the SDK and an OTLP exporter when it is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

MAX_BYTES = 3_500_000
"""Default for one request: what gRPC takes by default is 4 MiB, after decompression."""


class SplittingExporter(SpanExporter):
    """Gives an OTLP exporter its spans in requests of at most `max_bytes`; a larger span goes alone.

    Args:
        exporter: sends the requests.
        max_bytes: of one request, before compression.

    Example:
        >>> provider.add_span_processor(BatchSpanProcessor(SplittingExporter(OTLPSpanExporter())))
    """

    def __init__(self, exporter: SpanExporter, max_bytes: int = MAX_BYTES) -> None:
        self._exporter = exporter
        self._max_bytes = max_bytes

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export all parts, also after one that failed; SUCCESS if none did."""
        results = [self._exporter.export(part) for part in self._parts(spans)]
        return SpanExportResult.FAILURE if SpanExportResult.FAILURE in results else SpanExportResult.SUCCESS

    def _parts(self, spans: Sequence[ReadableSpan]) -> Iterator[list[ReadableSpan]]:
        part: list[ReadableSpan] = []
        filled = 0
        for span in spans:
            size = encode_spans([span]).ByteSize()
            if part and filled + size > self._max_bytes:
                yield part
                part, filled = [], 0
            part.append(span)
            filled += size
        if part:
            yield part

    def shutdown(self) -> None:
        """Shut the exporter down."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Flush the exporter."""
        return self._exporter.force_flush(timeout_millis)
