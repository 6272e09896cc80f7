"""Sends a trip over each way that a span may travel, and says what must be there at its end."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import astuple, replace
from typing import TypeAlias

from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from otlp.views import views_of

from otel_kernel import semconv
from otel_kernel.exporter import view_of
from otel_kernel.inputs.json_lines import read_line
from otel_kernel.inputs.problems import Problem
from otel_kernel.kinds import Stamped
from otel_kernel.mapping import CONTEXT_ATTRIBUTES, INLINE_LIMIT, NotATrip, Reject, read_span, to_attributes
from otel_kernel.records import (
    AttributeValue,
    CompilationOutcome,
    KernelCacheKey,
    Session,
    Text,
    TextDigest,
    Trip,
    TruncatedText,
)
from otel_kernel.spans import Spans
from otel_kernel.texts import TextFiles


class _TheseIds(IdGenerator):
    def __init__(self, trip: Trip) -> None:
        self._trip = trip

    def generate_span_id(self) -> int:
        return int(self._trip.span_id or "", 16)

    def generate_trace_id(self) -> int:
        return int(self._trip.trace_id or "", 16)


def full_trip() -> Trip:
    """Return a record that has every attribute a record can have, with ids."""
    attributes: dict[str, AttributeValue] = {}
    for name in CONTEXT_ATTRIBUTES:
        definition = semconv.ATTRIBUTES[name]
        if name != semconv.KEY_ABSENT_REASON:
            attributes[name] = _example(definition)
    for prefix, family in semconv.FAMILIES.items():
        for number in range(semconv.MAX_FAMILY):
            attributes[f"{prefix}part_{number}"] = _example(family)
    return Trip(
        session=Session(id="5" * 32, run="a" * 32),
        seq=12,
        parent_seq=11,
        runtime="acme",
        layer="acme.graph",
        kernel="shop.pricing.discount",
        started_ns=1_700_000_000_000_000_000,
        duration_ns=1_200_345_678,
        outcome=CompilationOutcome.COMPILED,
        key=KernelCacheKey(id=2**127, build_id=1),
        ir="label 0:\n" * 100,
        source="define i32 @f\n" * 100,
        trace_id="1" * 32,
        span_id="2" * 16,
        attributes=attributes,
    )


def _example(definition: semconv.Attribute) -> AttributeValue:
    example = definition.example.partition("=")[2] if definition.family else definition.example
    if definition.type is bool:
        return example == "true"
    return int(example) if definition.type is int else example


def with_ids(trip: Trip) -> Trip:
    """Return `trip` with ids that a span may have: neither absent nor zero."""
    return replace(
        trip,
        trace_id=trip.trace_id if trip.trace_id and int(trip.trace_id, 16) else "f" * 31 + "e",
        span_id=trip.span_id if trip.span_id and int(trip.span_id, 16) else "f" * 15 + "e",
    )


def span_of(
    trip: Trip,
    *,
    inline_limit: int = INLINE_LIMIT,
    texts: TextFiles | None = None,
    limits: SpanLimits | None = None,
) -> ReadableSpan:
    """Return the finished span of the SDK that the core makes of a trip, which has ids."""
    provider = TracerProvider(
        id_generator=_TheseIds(trip), span_limits=limits or SpanLimits(), shutdown_on_exit=False
    )
    spans = Spans(provider, private=True)
    span = spans.start(trip, None)
    spans.end(span, trip, inline_limit=inline_limit, texts=texts, error=None)
    assert isinstance(span, ReadableSpan)
    return span


Found: TypeAlias = "Trip | Stamped | NotATrip | Reject"
Carrier: TypeAlias = Callable[[ReadableSpan, "TextFiles | None"], Found]


def _through_the_exporter(span: ReadableSpan, texts: TextFiles | None) -> Found:
    return read_span(view_of(span), texts)


def _through_protobuf(span: ReadableSpan, texts: TextFiles | None) -> Found:
    data = encode_spans([span]).SerializeToString()
    (view,) = views_of(ExportTraceServiceRequest.FromString(data))
    return read_span(view, texts)


def _through_json(span: ReadableSpan, texts: TextFiles | None) -> Found:
    stream = io.StringIO()
    FileSpanExporter(stream=stream).export([span])
    (line,) = stream.getvalue().splitlines()
    (found,) = read_line(line.encode(), "spans.jsonl:1", texts)
    if not isinstance(found, Problem):
        return found
    ids = re.fullmatch(r".* \(trace ([0-9a-f]{32}), span ([0-9a-f]{16})\)", found.reason, re.DOTALL)
    return Reject(found.reason, *(ids.groups() if ids else ()))


CARRIERS: dict[str, Carrier] = {
    "readable span": _through_the_exporter,
    "OTLP protobuf": _through_protobuf,
    "OTLP JSON line": _through_json,
}


def difference(expected: Trip, found: Found) -> str:
    """Say how `found` is not exactly `expected`; an empty answer means that it is."""
    if not isinstance(found, Trip) or found != expected:
        return f"{expected} is {found}"
    # Python takes 1 and True for equal.
    return "".join(
        f"{name} is {found.attributes[name]!r}, not {value!r}; "
        for name, value in expected.attributes.items()
        if type(value) is not type(found.attributes[name])
    )


def complaint(sent: Trip, found: Found) -> str:
    """Say how `found` hides that it is not `sent`; an empty answer means that it hides nothing.

    It may be the trip in every field, or with a text that owns up to being cut, or a reject with the span's
    ids and the name of an attribute of the trip.
    """
    if isinstance(found, Reject):
        named = any(name in found.reason for name in to_attributes(sent))
        known = (sent.trace_id, sent.span_id) == (found.trace_id, found.span_id)
        return "" if named and known else f"rejected without a name or ids: {found}"
    if isinstance(found, Trip):
        return difference(
            replace(sent, ir=_left(sent.ir, found.ir), source=_left(sent.source, found.source)), found
        )
    return f"is no trip: {found}"


def _left(sent: Text, found: Text) -> Text:
    """Return `found` if it is what is left of `sent` and says so, else `sent`."""
    if isinstance(sent, TruncatedText) and isinstance(found, str):  # a text file has had the whole
        return found if (sent.sha256, sent.size) == astuple(TextDigest.of(found)) else sent
    if not isinstance(found, TruncatedText) or not isinstance(sent, (str, TruncatedText)):
        return sent
    whole = TextDigest.of(sent) if isinstance(sent, str) else TextDigest(sent.sha256, sent.size)
    start = sent if isinstance(sent, str) else sent.prefix
    is_rest = (whole.sha256, whole.size) == (found.sha256, found.size) and start.startswith(found.prefix)
    return found if is_rest else sent
