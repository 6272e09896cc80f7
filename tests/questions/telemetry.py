"""What the Collector gets of the fleet: spans with their resources, and the events at the start of trips."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clickhouse.database import moment, texts
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags

from generators.fleet import REQUEST_NS, REQUEST_TRACE, Process
from otel_kernel import semconv
from otel_kernel.mapping import INLINE_LIMIT, start_attributes
from otel_kernel.records import Trip
from otel_kernel.spans import Spans

_REQUEST_SPAN = 0xABCD


class _Ids(IdGenerator):
    """Gives the ids of a trip."""

    def __init__(self) -> None:
        self.trace = self.span = 0

    def generate_trace_id(self) -> int:
        return self.trace

    def generate_span_id(self) -> int:
        return self.span


def spans(process: Process) -> Iterator[ReadableSpan]:
    """Yield the spans of a process's trips that have ended, made as the core makes them, and of its request."""
    ids = _Ids()
    provider = TracerProvider(resource=Resource(process.resource), id_generator=ids, shutdown_on_exit=False)
    made = Spans(provider, private=True)
    for trip in process.trips:
        if trip.duration_ns is None:
            continue
        ids.trace, ids.span = int(trip.trace_id or "", 16), int(trip.span_id or "", 16)
        span = made.start(trip, _parent(process, trip))
        made.end(span, trip, inline_limit=INLINE_LIMIT, texts=None, error=None)
        assert isinstance(span, ReadableSpan)
        yield span
    if any(trip.trace_id == REQUEST_TRACE for trip in process.trips):
        ids.trace, ids.span = int(REQUEST_TRACE, 16), _REQUEST_SPAN
        began = round(process.started.timestamp()) * 10**9 + REQUEST_NS[0]
        request = provider.get_tracer("shop.web").start_span(
            "POST /rank", kind=SpanKind.SERVER, start_time=began
        )
        request.end(began + REQUEST_NS[1])
        assert isinstance(request, ReadableSpan)
        yield request


def _parent(process: Process, trip: Trip) -> NonRecordingSpan | None:
    if trip.parent_seq is not None:
        span_id = int(process.trips[trip.parent_seq].span_id or "", 16)
    elif trip.trace_id == REQUEST_TRACE:
        span_id = _REQUEST_SPAN
    else:
        return None
    flags = TraceFlags(TraceFlags.SAMPLED)
    return NonRecordingSpan(
        SpanContext(int(trip.trace_id or "", 16), span_id, is_remote=False, trace_flags=flags)
    )


def start_events(process: Process) -> Iterator[dict[str, Any]]:
    """Yield the rows of the events at the start of trips that run in no other, as the exporter writes them."""
    for trip in process.trips:
        if trip.parent_seq is None:
            yield {
                "Timestamp": moment(trip.started_ns),
                "TraceId": trip.trace_id,
                "SpanId": trip.span_id,
                "SeverityNumber": 9,
                "ServiceName": process.resource["service.name"],
                "Body": f"compile {trip.kernel}",
                "ResourceAttributes": process.resource,
                "ScopeName": semconv.SCOPE_PREFIX + trip.runtime,
                "LogAttributes": texts(start_attributes(trip)),
                "EventName": semconv.START_EVENT,
            }
