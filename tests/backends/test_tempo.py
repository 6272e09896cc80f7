"""Tempo, which is not installed here: its answers in the shape that its documentation gives."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

import pytest
from example_trips import a_record
from google.protobuf.json_format import MessageToDict
from mapping.carriers import full_trip, span_of, with_ids
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from backends.web import Answer, Answers, Question, Web, as_json, web
from otel_kernel import semconv
from otel_kernel.inputs import Problem, open_input
from otel_kernel.records import TextDigest, Trip, TruncatedText

ALWAYS = {semconv.PROCESS_PID: 4711, semconv.THREAD_ID: 4712, semconv.DEVICE_LOADED: True}
START_NS = 1_700_000_000_000_000_000


def some_trips(number: int) -> list[Trip]:
    from dataclasses import replace

    return [
        replace(
            with_ids(a_record(seq, attributes=ALWAYS, started_ns=START_NS + seq * 10_000_000_000)),
            trace_id=f"{seq + 1:032x}",
        )
        for seq in range(number)
    ]


def resource_spans(trip: Trip) -> list[Any]:
    """Return a trace as Tempo writes it: ids in base64, enums by name, 64-bit integers as strings."""
    spans: list[Any] = MessageToDict(encode_spans([span_of(trip)]))["resourceSpans"]
    (span,) = spans[0]["scopeSpans"][0]["spans"]
    assert b64encode(bytes.fromhex(trip.trace_id or "")).decode() == span["traceId"]
    assert "SPAN_KIND_INTERNAL" == span["kind"]
    return spans


def tempo_of(trips: list[Trip], **extra: Any) -> Answers:
    """Return what Tempo answers that holds these trips, each a trace of its own."""
    traces = {trip.trace_id: trip for trip in trips}

    def answer(question: Question) -> Answer:
        if "/api/search" == question.path:
            start, end, limit = (int(question.query[name]) for name in ("start", "end", "limit"))
            found = [trip for trip in trips if start <= trip.started_ns // 10**9 < end][:limit]
            # As it does, without leading zeros.
            return as_json({"traces": [{"traceID": (trip.trace_id or "").lstrip("0")} for trip in found]})
        trip = traces.get(question.path.removeprefix("/api/v2/traces/"))
        if trip is None:
            return Answer(b"trace not found", 404)
        return as_json({"trace": {"resourceSpans": resource_spans(trip)}, **extra})

    return answer


def spec(tempo: Web, **parameters: str) -> str:
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return f"tempo+http://127.0.0.1:{tempo.port}?since=2023-11-01&until=2023-12-01&{query}"


def test_all_traces_of_the_time_come_over_pages(capsys: pytest.CaptureFixture[str]) -> None:
    trips = some_trips(50)
    with web(tempo_of(trips)) as tempo:
        found = open_input(spec(tempo, limit="7"))

        assert trips == sorted((each for each in found if isinstance(each, Trip)), key=lambda trip: trip.seq)
    assert (50, 0, 0) == (found.trips, found.problems, found.duplicates)
    assert '{ span.compute.kernel.role = "trip" }' == tempo.questions[0].query["q"]


def test_a_question_of_ones_own_is_asked() -> None:
    with web(tempo_of([])) as tempo:
        list(open_input(spec(tempo, q="%7B%20duration%20%3E%201s%20%7D")))

    assert "{ duration > 1s }" == tempo.questions[0].query["q"]


def test_a_trace_is_read_by_its_id() -> None:
    trips = some_trips(2)
    with web(tempo_of(trips)) as tempo:
        found = list(open_input(spec(tempo, trace=str(trips[1].trace_id))))
        (lost,) = open_input(spec(tempo, trace="1" * 32))

    assert [trips[1]] == found
    assert f"tempo+http://127.0.0.1:{tempo.port}, trace {'1' * 32}: there is no such trace" == str(lost)


@pytest.mark.parametrize("status", ["PARTIAL", "STATUS_PARTIAL"])
def test_a_part_of_a_trace_is_read_and_said_to_be_one(status: str) -> None:
    with web(tempo_of(some_trips(1), status=status, message="too large")) as tempo:
        said, trip = open_input(spec(tempo))

    assert isinstance(trip, Trip)
    assert str(said).endswith("Tempo gives a part of it only: too large")


def test_an_answer_of_an_older_tempo_is_read() -> None:
    trips = some_trips(1)

    def answer(question: Question) -> Answer:
        if "/api/search" == question.path:
            return as_json({"traces": [{"traceID": trips[0].trace_id}]})
        return as_json({"batches": resource_spans(trips[0])})

    with web(answer) as tempo:
        assert trips == list(open_input(spec(tempo)))


def test_what_tempo_cuts_is_owned_up_to() -> None:
    (sent,) = [full_trip()]

    def cut(question: Question) -> Answer:
        if "/api/search" == question.path:
            return as_json({"traces": [{"traceID": sent.trace_id}]})
        spans = resource_spans(sent)
        for pair in spans[0]["scopeSpans"][0]["spans"][0]["attributes"]:
            if "stringValue" in pair["value"]:
                pair["value"]["stringValue"] = pair["value"]["stringValue"][:300]
        return as_json({"trace": {"resourceSpans": spans}})

    with web(cut) as tempo:
        (found,) = open_input(spec(tempo))

    assert isinstance(found, Trip)
    assert isinstance(sent.ir, str)
    digest = TextDigest.of(sent.ir)
    assert TruncatedText(sent.ir[:300], digest.sha256, digest.size) == found.ir


def test_more_traces_in_a_second_than_an_answer_holds_are_said_to_be_lost() -> None:
    from dataclasses import replace

    trips = [replace(trip, started_ns=START_NS) for trip in some_trips(5)]
    with web(tempo_of(trips)) as tempo:
        found = list(open_input(spec(tempo, limit="3")))
    (lost,) = [str(each) for each in found if isinstance(each, Problem)]

    assert trips[:4] == found[:4]
    assert re.search(r"more than 3 traces in the second 1700000000: the others are lost; raise limit=", lost)


@pytest.mark.parametrize(
    "wrong", [[], 7, {"trace": 7}, {"trace": {"resourceSpans": 7}}, {"trace": {"batches": [7]}}]
)
def test_an_answer_of_another_shape_is_a_problem(wrong: Any) -> None:
    def answer(question: Question) -> Answer:
        return as_json({"traces": [{"traceID": "1"}]} if "/api/search" == question.path else wrong)

    with web(answer) as tempo:
        found = list(open_input(spec(tempo)))

    assert [Problem] == list(map(type, found))
