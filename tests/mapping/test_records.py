"""Records of other kinds than trips come back from every carrier, or say what was lost."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from otlp.views import views_of
from strategies import counts, sessions, texts, words

from otel_kernel import semconv
from otel_kernel.exporter import view_of
from otel_kernel.inputs.json_lines import read_line
from otel_kernel.inputs.problems import Problem
from otel_kernel.kinds import (
    CompilationBatchRecord,
    MarkRecord,
    MemoryRecord,
    Placement,
    PlannedCandidate,
    SideRecord,
    Stamped,
    Trial,
    TuneRecord,
    UnknownRecord,
)
from otel_kernel.mapping import NotATrip, Reject, SpanView, read_span
from otel_kernel.record_mapping import read_any, read_record, to_attributes
from otel_kernel.records import Session, Trip
from otel_kernel.replay.spans import spans_of

json_texts = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda each: st.lists(each, max_size=3), max_leaves=6
).map(json.dumps)
others = st.dictionaries(st.text("abc_", min_size=1, max_size=5), json_texts, max_size=3)
priorities = st.integers(-128, 127)
trials = st.builds(Trial, texts, counts)
placements = st.builds(Placement, texts, st.booleans(), priorities, priorities)
candidates = st.builds(
    PlannedCandidate, texts, counts, st.none() | counts, st.lists(placements, max_size=2).map(tuple)
)
records: st.SearchStrategy[SideRecord] = st.one_of(
    st.builds(
        TuneRecord,
        table=texts,
        key=json_texts,
        checksum=texts,
        winner=counts,
        trials=st.lists(trials, max_size=3).map(tuple),
        short_circuit=st.none() | texts,
        wall=counts,
        dry_run=st.booleans(),
        stored=st.booleans(),
        plan=st.lists(candidates, max_size=3).map(tuple),
        other=others,
    ),
    st.builds(CompilationBatchRecord, kernels=counts, threads=counts, wall=counts, other=others),
    st.builds(MarkRecord, label=texts, wall=counts, other=others),
    st.builds(MemoryRecord, label=texts, report=json_texts, other=others),
    st.builds(UnknownRecord, kind=words.map("x{}".format), body=json_texts),
)
stamped_records = st.builds(
    Stamped, session=sessions, seq=counts, runtime=words, started_ns=counts, record=records
)

Found: TypeAlias = "Trip | Stamped | NotATrip | Reject | Problem"


def _through_protobuf(span: ReadableSpan) -> Found:
    (view,) = views_of(ExportTraceServiceRequest.FromString(encode_spans([span]).SerializeToString()))
    return read_any(view)


def _through_json(span: ReadableSpan) -> Found:
    stream = io.StringIO()
    FileSpanExporter(stream=stream).export([span])
    (found,) = read_line(stream.getvalue().encode(), "spans.jsonl:1")
    return found


CARRIERS: dict[str, Callable[[ReadableSpan], Found]] = {
    "readable span": lambda span: read_any(view_of(span)),
    "OTLP protobuf": _through_protobuf,
    "OTLP JSON line": _through_json,
}


@settings(deadline=None, max_examples=150)
@given(stamped_records)
def test_a_record_comes_back_from_every_carrier(stamped: Stamped) -> None:
    span, *_ = spans_of(stamped, None, Resource({}), None)

    for name, carry in CARRIERS.items():
        assert stamped == carry(span), name


TUNE = Stamped(
    session=Session(id="5" * 32, run="a" * 32),
    seq=3,
    runtime="cubecl",
    started_ns=1_700_000_000_000_000_000,
    record=TuneRecord(
        table="autotune/matmul",
        key='{"rows": 64}',
        checksum="9c1f",
        winner=1,
        trials=(Trial("tiled", 5), Trial("naive", 7)),
        short_circuit="naive",
        wall=20,
        dry_run=False,
        stored=True,
        plan=(PlannedCandidate("tiled", 0, None, (Placement("g", True, -1, 2),)),),
        other={"priority": "3"},
    ),
)
ATTRIBUTES = to_attributes(TUNE)


def view(attributes: dict[str, object]) -> SpanView:
    return SpanView("otel_kernel.cubecl", attributes, TUNE.started_ns, "1" * 32, "2" * 16)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_record_without_one_of_its_attributes_is_a_reject(name: str) -> None:
    found = read_any(view({each: value for each, value in ATTRIBUTES.items() if each != name}))

    assert isinstance(found, Reject)
    assert "lost: " in found.reason


@pytest.mark.parametrize(
    "name", [name for name, value in ATTRIBUTES.items() if isinstance(value, str) and value]
)
def test_a_record_of_which_an_attribute_was_cut_is_a_reject(name: str) -> None:
    found = read_any(view({**ATTRIBUTES, name: str(ATTRIBUTES[name])[:-1]}))

    assert isinstance(found, Reject)


def test_a_cut_attribute_is_named() -> None:
    longest = max(
        (name for name, value in ATTRIBUTES.items() if isinstance(value, str)),
        key=lambda name: len(str(ATTRIBUTES[name])),
    )
    found = read_record(view({**ATTRIBUTES, longest: str(ATTRIBUTES[longest])[:-8]}))

    assert isinstance(found, Reject)
    assert found.reason.startswith("cut: ")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (semconv.RECORD_VERSION, 2, "reads 1 to 1: update it"),
        (semconv.TUNE_WINNER, "x", "characters"),
        (semconv.TUNE_STORED, 1, f"{semconv.TUNE_STORED} must be bool, got 1"),
        (semconv.TUNE_WINNER, -1, "TuneRecord.winner must be an int in 0..2**63-1, got -1"),
        ("compute.kernel.added", 1, "added: of"),
    ],
)
def test_a_record_that_was_altered_is_a_reject(name: str, value: object, reason: str) -> None:
    found = read_record(view({**ATTRIBUTES, name: value}))

    assert isinstance(found, Reject)
    assert reason in found.reason


def test_a_record_of_another_kind_is_no_trip() -> None:
    assert isinstance(read_span(view({**ATTRIBUTES})), NotATrip)
    assert isinstance(read_record(view({**ATTRIBUTES, semconv.ROLE: "parent"})), NotATrip)
