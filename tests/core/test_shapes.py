"""A trip around a call: what is told of it, and that it changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import subprocess
import sys
import traceback
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from acme_instrumentor import compile_point, find_point, instrumentor, read_compile
from checks import ends, failing
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode
from telemetry import Telemetry

import otel_kernel
from otel_kernel import pipeline, semconv, trip
from otel_kernel.patching import Point
from otel_kernel.records import Abandoned, CompilationOutcome
from otel_kernel.shapes import Call, notice
from otel_kernel.shapes import trip as trip_shape
from otel_kernel.trip import Begin, OpenTrip

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

ROOT = Path(otel_kernel.__file__).parents[1]
COMPILED = CompilationOutcome.COMPILED


# What is a trip, and how it ends.


def test_compiling_is_one_trip_in_span_and_sink(compiler: Any, telemetry: Telemetry) -> None:
    kernel = compiler.compile("k", lambda: 7)

    assert 7 == kernel.value
    assert [("acme.k", "compiled")] == ends(telemetry.trips)
    assert ["compile acme.k"] == [span.name for span in telemetry.spans]
    assert 1 == compiler.calls


def test_second_call_emits_nothing(compiler: Any, telemetry: Telemetry) -> None:
    first = compiler.compile("k")
    second = compiler.compile("k")

    assert first is second
    assert 1 == len(telemetry.spans)


def test_probe_fills_the_trip_that_it_runs_in(compiler: Any, telemetry: Telemetry, acme: Any) -> None:
    acme.compiler.store.kept["k"] = object()
    compiler.compile("k")
    compiler.compile("other")

    assert [("acme.k", "loaded"), ("acme.other", "compiled")] == ends(telemetry.trips)


def test_held_trip_runs_on_in_a_later_call(acme: Any, telemetry: Telemetry) -> None:
    held: list[OpenTrip] = []

    def read_compile_and_hold(call: Call) -> Generator[Begin, OpenTrip, None]:
        open_trip = yield Begin(kernel=f"acme.{call.argument('name')}", layer="acme")
        open_trip.outcome = COMPILED
        open_trip.held = True
        held.append(open_trip)

    def read_link(call: Call) -> Generator[OpenTrip, OpenTrip, None]:
        open_trip = yield held.pop()
        open_trip.set(semconv.DEVICE_LOADED, call.argument("name") == "k" and open_trip.error is None)

    link = Point("acme.compiler", "Compiler.link", trip_shape(read_link), ("name",))
    compile_ = Point("acme.compiler", "Compiler.compile", trip_shape(read_compile_and_hold), ("name",))
    instrumentor(compile_, link).instrument()
    compiler = acme.Compiler()
    compiler.compile("k")

    assert [] == telemetry.trips
    assert trip.current() is None

    assert ("k", "none") == compiler.link("k")

    (ended,) = telemetry.trips

    assert COMPILED is ended.outcome
    assert True is ended.attributes[semconv.DEVICE_LOADED]
    assert 1 == len(telemetry.spans)


def test_a_trip_absorbs_those_of_the_compilers_that_it_calls(acme: Any, telemetry: Telemetry) -> None:
    def read_outer(call: Call) -> Generator[Begin, OpenTrip, None]:
        absorbs = frozenset({"acme"}) if call.argument("name") == "outer" else frozenset[str]()
        open_trip = yield Begin(str(call.argument("name")), "acme", absorbs=absorbs, started_ns=17)
        open_trip.outcome = COMPILED
        open_trip.last(4_000)

    instrumentor(Point("acme.compiler", "Compiler.compile", trip_shape(read_outer), ("name",))).instrument()
    compiler = acme.Compiler()
    compiler.compile("outer", lambda: acme.Compiler().compile("inner"))

    (outer,) = telemetry.trips

    assert ("outer", 17, 4_000) == (outer.kernel, outer.started_ns, outer.duration_ns)


def test_a_compile_worker_tells_nothing(
    compiler: Any, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    works: list[bool] = []
    monkeypatch.setattr(trip, "_workers", list[Any]())
    trip.tell_nothing_where(lambda: bool(works))
    compiler.compile("before")
    works.append(True)
    compiler.compile("as a worker")

    assert [("acme.before", "compiled")] == ends(telemetry.trips)
    assert 1 == len(telemetry.spans)


def test_probe_outside_a_trip_passes_untouched(acme: Any, telemetry: Telemetry) -> None:
    reads: list[Call] = []

    def read(call: Call, _trip: OpenTrip) -> Generator[None, None, None]:
        reads.append(call)
        yield

    instrumentor(compile_point(), find_point(read)).instrument()
    acme.compiler.store.kept["k"] = "found"

    assert "found" == acme.compiler.store.find("k")
    assert ([], []) == (reads, telemetry.spans)

    acme.Compiler().compile("k")

    assert 1 == len(reads)


def test_probe_inside_a_trip_of_another_runtime_passes_untouched(acme: Any, telemetry: Telemetry) -> None:
    reads: list[Call] = []

    def read(call: Call, _trip: OpenTrip) -> Generator[None, None, None]:
        reads.append(call)
        yield

    other = instrumentor(find_point(read))
    type(other).runtime = "other"
    other.instrument()
    instrumentor(compile_point()).instrument()
    acme.Compiler().compile("k")

    assert 1 == len(telemetry.trips)
    assert [] == reads


def test_notice_sees_every_call_and_makes_no_trip(acme: Any, telemetry: Telemetry) -> None:
    results: list[Any] = []

    def read(call: Call) -> Generator[None, None, None]:
        yield
        results.append((call.argument("name"), call.result, call.error))

    instrumentor(Point("acme.store", "find", notice(read), ("name",))).instrument()
    acme.compiler.store.kept["k"] = 1
    acme.compiler.store.find("k")
    acme.compiler.store.find(name="absent")

    assert [("k", 1, None), ("absent", None, None)] == results
    assert [] == telemetry.trips


def test_nested_compile_is_a_trip_inside_the_trip(compiler: Any, telemetry: Telemetry) -> None:
    compiler.compile("outer", lambda: compiler.compile("inner"))
    inner, outer = telemetry.trips
    inner_span, outer_span = telemetry.spans

    assert ("acme.inner", outer.seq) == (inner.kernel, inner.parent_seq)
    assert outer.parent_seq is None
    assert inner_span.parent == outer_span.get_span_context()


def test_span_stands_between_the_programs_spans(compiler: Any, telemetry: Telemetry) -> None:
    tracer = telemetry.tracer_provider.get_tracer("program")

    def body() -> None:
        tracer.start_span("inside").end()

    with tracer.start_as_current_span("around"):
        compiler.compile("k", body)
    by_name = {span.name: span for span in telemetry.spans}

    assert by_name["inside"].parent == by_name["compile acme.k"].get_span_context()
    assert by_name["compile acme.k"].parent == by_name["around"].get_span_context()


def test_what_the_call_does_to_the_context_lasts(compiler: Any) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("program", default=0)
    compiler.compile("k", lambda: variable.set(5))

    assert 5 == variable.get()


def test_type_and_identity_of_the_result_are_the_runtimes(compiler: Any, acme: Any) -> None:
    kernel = compiler.compile("k")

    assert type(kernel) is acme.compiler.Kernel
    assert compiler.kernels["k"] is kernel


def test_unknown_keyword_passes(compiler: Any, telemetry: Telemetry) -> None:
    compiler.compile("k", body=None, unknown=1)

    assert {"unknown": 1} == compiler.extra
    assert 1 == len(telemetry.trips)


# Failures: the exception is the program's.


def test_failure_is_an_error_without_outcome(compiler: Any, telemetry: Telemetry, acme: Any) -> None:
    with pytest.raises(acme.compiler.CompileError):
        compiler.compile("k", failing(acme.compiler.CompileError("secret")))
    (span,) = telemetry.spans

    assert [("acme.k", "acme.compiler.CompileError")] == ends(telemetry.trips)
    assert StatusCode.ERROR is span.status.status_code
    assert "acme.compiler.CompileError" == span.status.description
    assert semconv.OUTCOME not in (span.attributes or {})
    assert () == span.events


def test_exception_passes_as_the_same_object_with_the_librarys_frame_last(compiler: Any) -> None:
    error = ArithmeticError("theirs")
    with pytest.raises(ArithmeticError) as raised:
        compiler.compile("k", failing(error))

    assert raised.value is error
    assert error.__context__ is None
    assert error.__cause__ is None
    assert "library_code" == traceback.extract_tb(error.__traceback__)[-1].name


def test_context_and_cause_of_the_exception_stay(compiler: Any) -> None:
    first, cause = LookupError("first"), OSError("cause")
    error = ArithmeticError("theirs")

    def body() -> None:
        try:
            raise first
        except LookupError:
            raise error from cause

    with pytest.raises(ArithmeticError):
        compiler.compile("k", body)

    assert error.__context__ is first
    assert error.__cause__ is cause


def test_exception_raised_while_another_is_handled_keeps_that_as_its_context(compiler: Any) -> None:
    first, error = LookupError("first"), ArithmeticError("theirs")
    try:
        raise first
    except LookupError:
        with pytest.raises(ArithmeticError):
            compiler.compile("k", failing(error))

    assert error.__context__ is first


@pytest.mark.faults_logged
def test_fault_of_a_reader_does_not_show_in_the_exception(acme: Any, telemetry: Telemetry) -> None:
    def read(call: Call) -> Generator[Begin, OpenTrip, None]:
        yield Begin(f"acme.{call.argument('name')}", "acme")
        raise LookupError("ours")

    instrumentor(compile_point(read)).instrument()
    error = ArithmeticError("theirs")
    with pytest.raises(ArithmeticError) as raised:
        acme.Compiler().compile("k", failing(error))

    assert raised.value is error
    assert error.__context__ is None
    assert "library_code" == traceback.extract_tb(error.__traceback__)[-1].name
    assert [("acme.k", "ArithmeticError")] == ends(telemetry.trips)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_interrupt_that_leaves_the_outermost_trip_is_its_error(
    compiler: Any, telemetry: Telemetry, kind: type[BaseException]
) -> None:
    error = kind()
    with pytest.raises(kind) as raised:
        compiler.compile("outer", lambda: compiler.compile("inner", failing(error)))
    inner, outer = telemetry.spans

    assert raised.value is error
    assert [("acme.inner", "nested"), ("acme.outer", trip.error_type(error))] == ends(telemetry.trips)
    assert StatusCode.UNSET is inner.status.status_code
    assert StatusCode.ERROR is outer.status.status_code


def test_only_what_leaves_the_outermost_trip_is_an_error(compiler: Any, telemetry: Telemetry) -> None:
    def body() -> None:
        with contextlib.suppress(LookupError):
            compiler.compile("tried", failing(LookupError()))
        compiler.compile("broken", failing(ArithmeticError()))

    with pytest.raises(ArithmeticError):
        compiler.compile("outer", body)

    assert [
        ("acme.tried", "nested"),
        ("acme.broken", "nested"),
        ("acme.outer", "ArithmeticError"),
    ] == ends(telemetry.trips)
    assert [StatusCode.UNSET, StatusCode.UNSET, StatusCode.ERROR] == [
        span.status.status_code for span in telemetry.spans
    ]


def test_nested_failure_that_is_handled_leaves_a_record(compiler: Any, telemetry: Telemetry) -> None:
    def body() -> None:
        with contextlib.suppress(LookupError):
            compiler.compile("tried", failing(LookupError()))

    compiler.compile("outer", body)

    assert [("acme.tried", "nested"), ("acme.outer", "compiled")] == ends(telemetry.trips)


@pytest.mark.parametrize("why", [Abandoned.RETRY, Abandoned.TUNING])
@pytest.mark.parametrize("outcome_too", [False, True])
def test_control_flow_is_what_a_reader_says_it_is(
    acme: Any, telemetry: Telemetry, why: Abandoned, outcome_too: bool
) -> None:
    def read(call: Call) -> Generator[Begin, OpenTrip, None]:
        done = yield Begin(f"acme.{call.argument('name')}", "acme")
        done.outcome = COMPILED if outcome_too else None
        done.abandon(why)

    instrumentor(compile_point(read)).instrument()
    with pytest.raises(StopAsyncIteration):
        acme.Compiler().compile("k", failing(StopAsyncIteration()))
    (span,) = telemetry.spans

    assert [("acme.k", why.value)] == ends(telemetry.trips)
    assert StatusCode.UNSET is span.status.status_code
    assert why.value == (span.attributes or {})[semconv.ABANDONED]
    assert semconv.OUTCOME not in (span.attributes or {})


def test_failed_trip_is_no_record_whatever_a_reader_says(acme: Any, telemetry: Telemetry) -> None:
    def read(call: Call) -> Generator[Begin, OpenTrip, None]:
        done = yield Begin(f"acme.{call.argument('name')}", "acme")
        done.outcome = COMPILED

    instrumentor(compile_point(read)).instrument()
    with pytest.raises(LookupError):
        acme.Compiler().compile("k", failing(LookupError()))

    assert [("acme.k", "LookupError")] == ends(telemetry.trips)


# Where no trip is wanted.


def test_suppressed_call_is_in_no_span_and_no_sink(compiler: Any, telemetry: Telemetry) -> None:
    with suppress_instrumentation():
        compiler.compile("k", lambda: compiler.compile("inner"))

    assert ([], []) == (telemetry.spans, telemetry.trips)
    assert 2 == compiler.calls


def test_call_suppressed_inside_a_trip_is_no_trip(compiler: Any, telemetry: Telemetry) -> None:
    def body() -> None:
        with suppress_instrumentation():
            compiler.compile("inner")

    compiler.compile("outer", body)

    assert [("acme.outer", "compiled")] == ends(telemetry.trips)


def test_level_off_runs_no_reader(acme: Any, telemetry: Telemetry) -> None:
    def read(_call: Call) -> Generator[Begin, OpenTrip, None]:
        yield from ()
        raise AssertionError("read at level off")

    instrumentor(compile_point(read)).instrument(level="off")

    assert "k" == acme.Compiler().compile("k").name
    assert ([], []) == (telemetry.spans, telemetry.trips)


def test_level_can_change_while_the_program_runs(compiler: Any, telemetry: Telemetry) -> None:
    pipeline.configure(level="off")
    compiler.compile("a")
    pipeline.configure(level="basic")
    compiler.compile("b")

    assert [("acme.b", "compiled")] == ends(telemetry.trips)


def test_sinks_get_trips_whose_span_is_not_recording(acme: Any, telemetry: Telemetry) -> None:
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    instrumentor().instrument(tracer_provider=provider)
    acme.Compiler().compile("k")
    (only,) = telemetry.trips

    assert COMPILED is only.outcome
    assert [] == telemetry.spans


WITHOUT_SDK = """
import sys
from acme_instrumentor import instrumentor
from opentelemetry import trace
from otel_kernel import pipeline
from telemetry_free import Sink

instrumentor().instrument()
pipeline.add_sink(Sink())
import acme

inside = []
acme.Compiler().compile("k", lambda: inside.append(trace.get_current_span()))
assert inside == [trace.INVALID_SPAN], inside
assert not any(name.startswith("opentelemetry.sdk") for name in sys.modules)
"""

SINK = """
class Sink:
    wants_start = False

    def finished(self, trip):
        print(trip.kernel, trip.outcome.value, trip.trace_id, trip.span_id)
"""


def test_sinks_get_trips_without_an_sdk(acme_path: Path) -> None:
    (acme_path / "telemetry_free.py").write_text(SINK)
    output = subprocess.run(
        [sys.executable, "-c", WITHOUT_SDK],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests", acme_path)))},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout

    assert "acme.k compiled None None\n" == output


def test_reader_gets_arguments_however_they_are_passed(acme: Any, telemetry: Telemetry) -> None:
    seen: list[tuple[Any, Any]] = []

    def read(call: Call) -> Generator[Begin, OpenTrip, None]:
        seen.append((call.argument("name"), call.argument("flags", "default")))
        yield from ()

    instrumentor(compile_point(read, name="Compiler.link")).instrument()
    acme.Compiler().link("a", "more", "parts")
    acme.Compiler.link(name="b")
    acme.Compiler.link("c", flags="d")

    assert [("a", "default"), ("b", "default"), ("c", "d")] == seen
    assert [] == telemetry.trips


def test_readers_own_compile_is_no_child_of_the_trip(acme: Any, telemetry: Telemetry) -> None:
    helper = acme.Compiler()

    def read(call: Call) -> Generator[Begin, OpenTrip, None]:
        steps = read_compile(call)
        done = yield next(steps)
        helper.compile("by the reader") if call.instance is not helper else None
        with contextlib.suppress(StopIteration):
            steps.send(done)

    instrumentor(compile_point(read)).instrument()
    acme.Compiler().compile("k")

    assert [("acme.by the reader", None), ("acme.k", None)] == [
        (each.kernel, each.parent_seq) for each in telemetry.trips
    ]
