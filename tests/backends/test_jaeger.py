"""A real Jaeger gives the trips back that it was sent, by both of its APIs."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Any

import pytest
from cli.command import otel_kernel
from example_trips import a_record, other_session
from mapping.carriers import full_trip, span_of
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExporter
from servers.jaeger import Jaeger
from servers.sending import send
from servers.waiting import eventually

from backends.web import Answer, Question, as_json, web
from otel_kernel import semconv
from otel_kernel.inputs import InputError, Problem, open_input
from otel_kernel.records import Trip

ALWAYS = {semconv.PROCESS_PID: 4711, semconv.THREAD_ID: 4712, semconv.DEVICE_LOADED: True}
NOW_NS = time.time_ns()
NUMBER = 60


def trips_sent() -> list[Trip]:
    """Return trips of the last minutes, each in a trace of its own but for two, with every attribute and texts."""
    trips = [
        replace(
            a_record(
                seq, session=other_session(7), attributes=ALWAYS, started_ns=NOW_NS - seq * 1_234_567_891
            ),
            trace_id=f"{seq // 2 + 1:032x}" if seq < 2 else f"{seq + 1:032x}",
            span_id=f"{seq + 1:016x}",
        )
        for seq in range(NUMBER)
    ]
    failed = replace(
        trips[3], seq=NUMBER, outcome=None, key=None, error_type="builtins.ValueError", message="é: no",
        trace_id="a" * 32, span_id="b" * 16, started_ns=NOW_NS - 777_777,
    )  # fmt: skip
    full = replace(
        full_trip(), started_ns=NOW_NS - 888_888, seq=NUMBER + 1, parent_seq=3, session=other_session(7)
    )
    return [*trips, failed, full]


SENT = trips_sent()


@pytest.fixture(scope="module")
def jaeger(tmp_path_factory: pytest.TempPathFactory, servers: None) -> Generator[Jaeger]:
    """A Jaeger that holds `SENT`, one part of them in another service."""
    with Jaeger(tmp_path_factory.mktemp("jaeger")) as started:
        exporter: SpanExporter = OTLPSpanExporter(endpoint=started.otlp, insecure=True)
        send(exporter, [span_of(trip) for trip in SENT])
        eventually(lambda: len(SENT) == len(trips_in(open_input(spec(started)))))
        yield started


def spec(jaeger: Jaeger, query: str = "") -> str:
    return f"jaeger+{jaeger.api}?{query}"


def trips_in(found: Iterable[Trip | Problem]) -> list[Trip]:
    return sorted((each for each in found if isinstance(each, Trip)), key=lambda trip: trip.seq)


@pytest.mark.parametrize("limit", [1, 2, 7, 1000])
def test_every_trip_comes_back_once_whatever_an_answer_holds(jaeger: Jaeger, limit: int) -> None:
    found = open_input(spec(jaeger, f"limit={limit}&since=1h"))

    assert SENT == trips_in(found)
    assert (0, 0) == (found.problems, found.duplicates)


@pytest.mark.parametrize("limit", [2, 1000])
def test_the_legacy_api_cuts_start_times_to_microseconds_and_nothing_else(jaeger: Jaeger, limit: int) -> None:
    found = open_input(spec(jaeger, f"api=legacy&limit={limit}&since=1h"))

    assert [replace(trip, started_ns=trip.started_ns // 1000 * 1000) for trip in SENT] == trips_in(found)
    assert (0, 0) == (found.problems, found.duplicates)


@pytest.mark.parametrize("api", ["v3", "legacy"])
def test_a_trace_is_read_by_its_id(jaeger: Jaeger, api: str) -> None:
    found = trips_in(open_input(spec(jaeger, f"api={api}&trace={SENT[0].trace_id}")))
    (lost,) = open_input(spec(jaeger, f"api={api}&trace={'c' * 32}"))

    assert [0, 1] == [trip.seq for trip in found]
    assert f"jaeger+{jaeger.api}: there is no trace {'c' * 32}" == str(lost)


def test_a_time_and_a_service_leave_others_out(jaeger: Jaeger) -> None:
    assert [] == list(open_input(spec(jaeger, "since=3h&until=2h")))
    assert [] == list(open_input(spec(jaeger, "service=nobody")))
    assert SENT == trips_in(open_input(spec(jaeger, "service=unknown_service:python")))


def test_a_command_reads_it(jaeger: Jaeger) -> None:
    done = otel_kernel("list", "--json", spec(jaeger))

    assert (0, "") == (done.returncode, done.stderr)
    assert NUMBER + 1 == done.stdout.count("\n")  # all but the one that failed


@pytest.mark.parametrize("api", ["v3", "legacy"])
@pytest.mark.parametrize(
    "wrong", [7, [], {"data": 7}, {"data": [7]}, {"data": [{"spans": [7]}]}, {"result": {"resourceSpans": 7}}]
)  # fmt: skip
def test_an_answer_of_another_shape_is_a_problem(api: str, wrong: Any) -> None:
    def answer(question: Question) -> Answer:
        return as_json({"services": ["a"], "data": ["a"]} if question.path.endswith("services") else wrong)

    with web(answer) as server:
        found = list(open_input(f"jaeger+http://127.0.0.1:{server.port}?api={api}"))

    assert [Problem] == list(map(type, found))


def test_something_else_than_jaeger_is_said_to_be_that() -> None:
    with (
        web(lambda _: as_json({"services": 7})) as server,
        pytest.raises(InputError, match="does not list services as Jaeger does: try api=legacy"),
    ):
        list(open_input(f"jaeger+http://127.0.0.1:{server.port}"))
