"""OTLP JSON lines are read in every spelling that writers use, and what is wrong costs its line or span only."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from example_trips import a_record

from otel_kernel import semconv
from otel_kernel.inputs import Problem
from otel_kernel.inputs.json_lines import read_line
from otel_kernel.kinds import Stamped
from otel_kernel.mapping import NotATrip, to_attributes
from otel_kernel.records import Trip, TruncatedText

TRACE_ID = "0123456789abcdef0123456789abcdef"
SPAN_ID = "fedcba9876543210"
TRIP = a_record(
    3, ir="label 0:", attributes={semconv.DEVICE_LOADED: True, semconv.PROCESS_PID: 1, semconv.THREAD_ID: 2}
)


def a_value(value: object) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def a_span(**changes: Any) -> dict[str, Any]:
    """Return the span of TRIP as the Collector writes it."""
    span: dict[str, Any] = {
        "traceId": TRACE_ID,
        "spanId": SPAN_ID,
        "name": "compile shop.discount",
        "kind": 1,
        "startTimeUnixNano": str(TRIP.started_ns),
        "endTimeUnixNano": str(TRIP.started_ns + 1_000_000),
        "attributes": [{"key": name, "value": a_value(value)} for name, value in to_attributes(TRIP).items()],
        "status": {},
    }
    return {**span, **changes}


def a_request(*spans: Any, scope: str = "otel_kernel.numba") -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}]}]}


def read(request: object) -> list[Trip | Stamped | NotATrip | Problem]:
    return list(read_line(json.dumps(request).encode(), "spans.jsonl:7"))


def the_trip(request: object) -> Trip:
    (found,) = read(request)
    assert isinstance(found, Trip), found
    return found


def the_problem(request: object) -> str:
    (found,) = read(request)
    assert isinstance(found, Problem), found
    return str(found)


def renamed(value: Any) -> Any:
    """Return JSON with the names of all objects in snake case."""
    text = json.dumps(value)
    return json.loads(re.sub(r'"(\w+)":', lambda name: f'"{snake(name[1])}":', text))


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def test_a_span_is_read_as_its_trip() -> None:
    trip = the_trip(a_request(a_span()))

    assert (TRACE_ID, SPAN_ID) == (trip.trace_id, trip.span_id)
    assert TRIP.record == trip.record
    assert (TRIP.session, TRIP.seq, TRIP.started_ns) == (trip.session, trip.seq, trip.started_ns)
    assert TRIP.attributes == trip.attributes


def test_snake_case_is_read_like_camel_case() -> None:
    request = a_request(a_span())

    assert the_trip(request) == the_trip(renamed(request))


def test_ids_in_base64_and_upper_case_hex_are_read_like_lower_case_hex() -> None:
    in_base64 = a_span(
        traceId=base64.b64encode(bytes.fromhex(TRACE_ID)).decode(),
        spanId=base64.b64encode(bytes.fromhex(SPAN_ID)).decode(),
    )
    in_capitals = a_span(traceId=TRACE_ID.upper(), spanId=SPAN_ID.upper())

    assert the_trip(a_request(a_span())) == the_trip(a_request(in_base64))
    assert the_trip(a_request(a_span())) == the_trip(a_request(in_capitals))


def test_integers_are_read_from_numbers_and_from_strings() -> None:
    span = a_span(startTimeUnixNano=TRIP.started_ns)
    for attribute in span["attributes"]:
        if "intValue" in attribute["value"]:
            attribute["value"] = {"intValue": int(attribute["value"]["intValue"])}

    assert the_trip(a_request(a_span())) == the_trip(a_request(span))


@pytest.mark.parametrize(
    "value",
    [
        {"doubleValue": 1.5},
        {"doubleValue": "NaN"},
        {"bytesValue": "AAE="},
        {"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}, {}]}},
        {"kvlistValue": {"values": [{"key": "a", "value": {"boolValue": True}}, {"key": "b"}]}},
        {},
        None,
        {"a kind to come": 1},
    ],
)
def test_attributes_of_others_are_read_whatever_they_hold(value: object) -> None:
    span = a_span()
    span["attributes"].append({"key": "enduser.notes", "value": value})

    assert the_trip(a_request(a_span())) == the_trip(a_request(span))


def test_a_name_of_ours_that_holds_no_scalar_is_a_problem_that_names_it() -> None:
    span = a_span()
    span["attributes"].append({"key": "compute.kernel.target", "value": {"doubleValue": 1.5}})

    problem = the_problem(a_request(span))

    assert problem.startswith("spans.jsonl:7: compute.kernel.target must be")
    assert problem.endswith(f"(trace {TRACE_ID}, span {SPAN_ID})")


def test_a_reject_is_a_problem_with_the_reason_and_the_ids() -> None:
    span = a_span()
    span["attributes"] = [each for each in span["attributes"] if each["key"] != "compute.kernel.layer"]

    problem = the_problem(a_request(span))

    assert problem.startswith("spans.jsonl:7: lost: compute.kernel.layer")
    assert problem.endswith(f"(trace {TRACE_ID}, span {SPAN_ID})")


def test_a_text_that_was_taken_on_the_way_is_truncated() -> None:
    span = a_span()
    span["attributes"] = [each for each in span["attributes"] if each["key"] != "compute.kernel.ir.text"]

    ir = the_trip(a_request(span)).ir

    assert isinstance(ir, TruncatedText)
    assert ("", 8) == (ir.prefix, ir.size)


def test_spans_of_others_are_no_trips_and_no_problems() -> None:
    (found,) = read(a_request(a_span(attributes=[{"key": "a"}]), scope="shop.web"))

    assert isinstance(found, NotATrip)


def test_other_signals_an_empty_request_and_blank_lines_hold_nothing() -> None:
    for line in (b'{"resourceMetrics": [{}]}', b'{"resource_logs": [{}]}', b"{}", b"", b" \r\n"):
        assert [] == list(read_line(line, "here"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"resourceSpans": [', "malformed JSON: Expecting value at column 20"),
        (b"\xff\xfe{", "malformed JSON: "),
        (b"[" * 100_000, "malformed JSON: "),
        (b"[]", "not OTLP: an object is needed, got []"),
        (b'{"data": []}', "not OTLP: no resourceSpans in {'data': []}"),
        (b'{"resourceSpans": 1}', "not OTLP: resourceSpans must be a list, got 1"),
        (b'{"resourceSpans": [1]}', "not OTLP: resourceSpans must hold objects, got [1]"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [1]}]}]}', "malformed span 1: "),
    ],
)
def test_a_line_that_is_no_otlp_is_one_problem(line: bytes, reason: str) -> None:
    (found,) = read_line(line, "spans.jsonl:7")

    assert isinstance(found, Problem)
    assert str(found).startswith(f"spans.jsonl:7: {reason}")
    assert 300 > len(str(found))


@pytest.mark.parametrize(
    "damage",
    [
        {"traceId": "12"},
        {"traceId": 12},
        {"spanId": "x" * 15},
        {"startTimeUnixNano": "soon"},
        {"startTimeUnixNano": 1.5},
        {"startTimeUnixNano": True},
        {"attributes": 5},
        {"attributes": [5]},
        {"attributes": [{"value": {"stringValue": "a"}}]},
        {"attributes": [{"key": 5, "value": {"stringValue": "a"}}]},
        {"attributes": [{"key": "a", "value": {"intValue": "x"}}]},
        {"attributes": [{"key": "a", "value": {"boolValue": "true"}}]},
        {"status": 5},
    ],
)
def test_a_malformed_span_is_a_problem_and_its_neighbours_still_count(damage: dict[str, Any]) -> None:
    before, problem, after = read(a_request(a_span(), a_span(**damage), a_span()))

    assert isinstance(before, Trip)
    assert isinstance(problem, Problem)
    assert problem.reason.startswith("malformed span")
    assert before == after


def test_a_scope_of_another_shape_is_no_fault_of_ours() -> None:
    request = a_request(a_span())
    request["resourceSpans"][0]["scopeSpans"][0]["scope"] = ["?"]

    assert TRIP.record == the_trip(request).record
