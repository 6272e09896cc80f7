"""Spans in OTLP protobuf as a reader of trips sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from otel_kernel.mapping import SpanView


def attributes_of(pairs: Iterable[KeyValue]) -> dict[str, object]:
    """Return the attributes with their values as Python's; one of another kind stays an `AnyValue`."""
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind in ("string_value", "int_value", "bool_value", "double_value", "bytes_value"):
        found: object = getattr(value, kind)
        return found
    return value


def views_of(request: ExportTraceServiceRequest) -> Iterator[SpanView]:
    """Yield the spans of a request."""
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield SpanView(
                    scope=scope_spans.scope.name,
                    attributes=attributes_of(span.attributes),
                    start_ns=span.start_time_unix_nano,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    description=span.status.message,
                )
