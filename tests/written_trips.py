"""Trips written where reading commands find them, by the exporters and the sink that users have."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Status, StatusCode

from otel_kernel.mapping import start_attributes, to_attributes
from otel_kernel.recording.writer import RecordingSink
from otel_kernel.records import Trip


class _IdsOfTrips(RandomIdGenerator):
    """Gives a span the ids that its trip has."""

    trip: Trip | None = None

    def generate_trace_id(self) -> int:
        known = self.trip.trace_id if self.trip is not None else None
        return int(known, 16) if known is not None else super().generate_trace_id()

    def generate_span_id(self) -> int:
        known = self.trip.span_id if self.trip is not None else None
        return int(known, 16) if known is not None else super().generate_span_id()


def write_otlp(path: Path, trips: Iterable[Trip], *, batch: int = 1) -> Path:
    """Write finished trips as spans of the SDK, so many of them a line of OTLP JSON."""
    # No part of every set of OpenTelemetry packages that runtimes are tested beside.
    from opentelemetry.exporter.otlp.json.file import FileSpanExporter

    ids = _IdsOfTrips()
    provider = TracerProvider(id_generator=ids, shutdown_on_exit=False)
    provider.add_span_processor(
        BatchSpanProcessor(FileSpanExporter(path), schedule_delay_millis=1e6, max_export_batch_size=batch)
    )
    for trip in trips:
        ids.trip = trip
        tracer = provider.get_tracer(f"otel_kernel.{trip.runtime}")
        span = tracer.start_span(
            f"compile {trip.kernel}", attributes=start_attributes(trip), start_time=trip.started_ns
        )
        span.set_attributes(to_attributes(trip))
        if trip.error_type is not None:
            span.set_status(Status(StatusCode.ERROR, trip.message))
        span.end(trip.started_ns + (trip.duration_ns or 0))
    ids.trip = None
    with provider.get_tracer("shop.web").start_as_current_span("GET /"):
        pass  # a span of somebody else
    provider.shutdown()
    return path


def write_recording(path: Path, trips: Iterable[Trip]) -> Path:
    """Write trips to a recording."""
    sink = RecordingSink(path)
    for trip in trips:
        if trip.duration_ns is None:
            sink.started(trip)
        else:
            sink.finished(trip)
    sink.close()
    return path


def write_trips(path: Path, trips: Iterable[Trip]) -> Path:
    """Write trips as JSON lines."""
    path.write_text("".join(f"{json.dumps(trip.to_json())}\n" for trip in trips), encoding="utf-8")
    return path
