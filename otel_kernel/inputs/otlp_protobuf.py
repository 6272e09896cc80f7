"""OTLP protobuf: export requests, as SDKs send them and as the Collector's file exporter writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from otel_kernel.inputs.problems import InputError, Problem
from otel_kernel.kinds import Stamped
from otel_kernel.mapping import NotATrip, Reject, SpanView
from otel_kernel.record_mapping import read_any
from otel_kernel.records import Trip
from otel_kernel.texts import TextFiles

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

_SCALARS = ("string_value", "int_value", "bool_value", "double_value", "bytes_value")


def read_request(
    data: bytes | bytearray | memoryview, where: str, texts: TextFiles | None = None
) -> Iterator[Trip | Stamped | NotATrip | Problem]:
    """Yield what the spans of one request stand for, and a problem for each one that is lost.

    Args:
        data: an encoded `ExportTraceServiceRequest`, which is encoded as `TracesData` is.
        where: names the request in problems.
        texts: where to look for texts that a span does not carry whole.

    Raises:
        InputError: the package that decodes it is not installed.
    """
    try:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ImportError as error:
        raise InputError(
            f"{where} is OTLP protobuf, which needs the package opentelemetry-proto: "
            f"pip install 'otel-kernel[otlp]'"
        ) from error
    request = TracesData()
    try:
        request.ParseFromString(bytes(data))
    except DecodeError as error:
        yield Problem(where, f"malformed protobuf: {error}", is_whole=True)
        return
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                found = read_any(_view(scope_spans.scope.name, span), texts)
                if isinstance(found, Reject):
                    ids = f"trace {found.trace_id}, span {found.span_id}"
                    yield Problem(where, f"{found.reason} ({ids})")
                else:
                    yield found


def _view(scope: str, span: Span) -> SpanView:
    return SpanView(
        scope,
        {pair.key: _value(pair.value) for pair in span.attributes},
        span.start_time_unix_nano,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.status.message,
    )


def _value(value: Any) -> object:
    """Return what an `AnyValue` holds; lists and maps, which no attribute of ours is, stay as they are."""
    kind = value.WhichOneof("value")
    return getattr(value, kind) if kind in _SCALARS else value
