"""A pipeline that keeps everything in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_kernel.records import Trip


class CollectingSink:
    """Keeps the trips that it is handed."""

    def __init__(self, *, wants_start: bool = False) -> None:
        self.wants_start = wants_start
        self.starts: list[Trip] = []
        self.trips: list[Trip] = []

    def started(self, trip: Trip) -> None:
        """Keep an unfinished trip."""
        self.starts.append(trip)

    def finished(self, trip: Trip) -> None:
        """Keep a trip that has ended."""
        self.trips.append(trip)


@dataclass
class Telemetry:
    """A provider of traces, one of metrics and a sink, and what they have taken."""

    sink: CollectingSink
    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)

    def __post_init__(self) -> None:
        self.meter_provider = MeterProvider([self.reader], shutdown_on_exit=False)
        self.tracer_provider = TracerProvider(shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self) -> list[ReadableSpan]:
        """The finished spans, the first to end first."""
        return list(self.exporter.get_finished_spans())

    @property
    def trips(self) -> list[Trip]:
        """The finished trips, the first to end first."""
        return self.sink.trips

    def close(self) -> None:
        """Stop both providers."""
        self.tracer_provider.shutdown()
        self.meter_provider.shutdown()
