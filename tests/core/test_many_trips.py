"""What is countable about many trips: as many spans, as many trips read back from them, and nothing kept."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from acme_instrumentor import instrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from otel_kernel import pipeline
from otel_kernel.exporter import TripExporter
from otel_kernel.records import Trip

TRIPS = 100_000


class _Counter:
    """A sink that counts."""

    wants_start = True

    def __init__(self) -> None:
        self.starts = self.ends = 0

    def started(self, trip: Trip) -> None:
        self.starts += 1

    def finished(self, trip: Trip) -> None:
        self.ends += 1


class _CountingProcessor(SimpleSpanProcessor):
    """Counts the spans that it exports."""

    spans = 0

    def on_end(self, span: ReadableSpan) -> None:
        self.spans += 1
        super().on_end(span)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_trips_are_as_many_spans_and_keep_no_object(acme: Any) -> None:
    sink, read_back = _Counter(), _Counter()
    processor = _CountingProcessor(TripExporter(read_back))
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    instrumentor().instrument(tracer_provider=provider)
    pipeline.add_sink(sink)

    def compile_often(times: int) -> int:
        for _ in range(times):
            acme.Compiler().compile("k")
        gc.collect()
        return len(gc.get_objects())

    before = compile_often(100)
    after = compile_often(TRIPS)

    assert (TRIPS + 100,) * 2 == (sink.starts, sink.ends)
    assert TRIPS + 100 == processor.spans
    assert TRIPS + 100 == read_back.ends
    assert after - before < 100
