"""Trips in generators, tasks, threads and processes, and what is left of them in memory."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import os
import threading
import traceback
import weakref
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from acme_instrumentor import compile_point, instrumentor
from checks import ends, failing, is_free
from opentelemetry.sdk.trace import TracerProvider
from telemetry import Telemetry

from otel_kernel import semconv, session, spans, trip
from otel_kernel.records import CompilationOutcome
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

COMPILED = CompilationOutcome.COMPILED


def test_generator_that_compiles_and_is_closed_early_detaches_well(
    compiler: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    def kernels() -> Generator[Any, None, None]:
        for name in ("a", "b", "c"):
            yield compiler.compile(name)

    around = kernels()
    next(around)
    around.close()

    def body() -> None:
        inner = kernels()
        next(inner)
        next(inner)
        inner.close()

    compiler.compile("outer", body)

    assert ["acme.a", "acme.b", "acme.outer"] == [each.kernel for each in telemetry.trips]
    assert [] == caplog.records


def test_task_cancelled_around_a_compile_detaches_well(
    compiler: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    async def serve(name: str) -> None:
        compiler.compile(name)
        await asyncio.sleep(60)

    async def main() -> None:
        tasks = [asyncio.create_task(serve(name)) for name in ("a", "b")]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())

    assert ["acme.a", "acme.b"] == [each.kernel for each in telemetry.trips]
    assert [None, None] == [each.parent_seq for each in telemetry.trips]
    assert [] == caplog.records


def test_task_that_outlives_the_trip_it_was_made_in_is_not_inside_it(
    compiler: Any, telemetry: Telemetry
) -> None:
    async def later() -> None:
        compiler.compile("later", failing(ArithmeticError()))

    async def main() -> None:
        tasks: list[asyncio.Task[None]] = []
        compiler.compile("k", lambda: tasks.append(asyncio.create_task(later())))
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())

    assert [("acme.k", "compiled"), ("acme.later", "ArithmeticError")] == ends(telemetry.trips)
    assert telemetry.trips[1].parent_seq is None


@pytest.mark.usefixtures("compiler")
def test_threads_that_compile_at_once_do_not_mix(telemetry: Telemetry, acme: Any) -> None:
    meet = threading.Barrier(4)

    def work(number: int) -> int:
        made = acme.Compiler()

        def body() -> None:
            meet.wait(60)
            made.compile(f"inner{number}")
            meet.wait(60)

        made.compile(f"outer{number}", body)
        return threading.get_native_id()

    with ThreadPoolExecutor(4) as pool:
        threads = list(pool.map(work, range(4)))
    trips = {each.kernel: each for each in telemetry.trips}
    spans = {span.name: span for span in telemetry.spans}

    assert 8 == len({each.seq for each in telemetry.trips})
    assert {session.current()} == {each.session for each in telemetry.trips}
    for number, thread in enumerate(threads):
        outer, inner = trips[f"acme.outer{number}"], trips[f"acme.inner{number}"]

        assert (None, outer.seq) == (outer.parent_seq, inner.parent_seq)
        assert thread == outer.attributes[semconv.THREAD_ID] == inner.attributes[semconv.THREAD_ID]
        assert spans[f"compile {outer.kernel}"].parent is None
        assert spans[f"compile {inner.kernel}"].parent == spans[f"compile {outer.kernel}"].get_span_context()


def test_thread_started_inside_a_trip_is_not_inside_it(
    compiler: Any, telemetry: Telemetry, acme: Any
) -> None:

    def body() -> None:
        thread = threading.Thread(target=acme.Compiler().compile, args=("other",))
        thread.start()
        thread.join()

    compiler.compile("k", body)

    assert [None, None] == [each.parent_seq for each in telemetry.trips]
    assert [None, None] == [span.parent for span in telemetry.spans]


def in_child(work: Callable[[], str]) -> str:
    """Return what `work` returns in a forked child."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, work().encode())
        except BaseException:
            os.write(writer, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        told = file.read()
    os.waitpid(pid, 0)
    return told


def test_forked_child_has_a_session_of_its_own_in_the_same_run(compiler: Any, telemetry: Telemetry) -> None:
    compiler.compile("k")

    def work() -> str:
        compiler.compile("child")
        last = telemetry.trips[-1]
        return f"{last.kernel} {last.session.id} {last.session.run} {last.seq} {last.parent_seq}"

    kernel, session_id, run, seq, parent = in_child(work).split(" ")

    assert ("acme.child", "0", "None") == (kernel, seq, parent)
    assert session.current().id != session_id
    assert session.current().run == run


def test_child_forked_inside_a_trip_is_not_inside_it(compiler: Any, telemetry: Telemetry) -> None:
    told: list[str] = []

    def work() -> str:
        assert trip.current() is None
        with contextlib.suppress(ArithmeticError):
            compiler.compile("child", failing(ArithmeticError()))
        last = telemetry.trips[-1]
        return f"{ends([last])} {last.parent_seq} {spans.oldest_active()}"

    compiler.compile("k", lambda: told.append(in_child(work)))

    assert ["[('acme.child', 'ArithmeticError')] None 0.0"] == told
    assert [("acme.k", "compiled")] == ends(telemetry.trips)


def test_child_that_returns_through_the_parents_trip_does_not_tell_of_it(
    compiler: Any, telemetry: Telemetry
) -> None:
    reader, writer = os.pipe()
    parent = os.getpid()
    compiler.compile("k", os.fork)
    if os.getpid() != parent:
        told = f"{len(telemetry.trips)} {len(telemetry.spans)} {trip.current()} {is_free(compiler.lock)}"
        os.write(writer, told.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        told = file.read()
    os.waitpid(compiler.kernels["k"].value, 0)

    assert "0 0 None True" == told
    assert [("acme.k", "compiled")] == ends(telemetry.trips)


# Memory, and what an attribute may be.


class _Watched:
    """Something that can be watched."""


class _WatchedError(Exception):
    """An error that can be watched."""


@pytest.mark.parametrize("level", ["basic", "full"])
def test_nothing_of_the_program_is_kept(acme: Any, telemetry: Telemetry, level: str) -> None:
    instrumentor().instrument(level=level)
    watched: list[weakref.ref[Any]] = []

    def watch(value: Any) -> Any:
        watched.append(weakref.ref(value))
        return value

    def body() -> Any:
        in_frame = watch(_Watched())
        assert in_frame is not None
        return watch(_Watched())

    def broken() -> Any:
        in_frame = watch(_Watched())
        assert in_frame is not None
        raise watch(_WatchedError())

    def round_trip() -> None:
        made = watch(acme.Compiler())
        watch(made.compile(watch(_Watched()), watch(lambda: body())))
        with contextlib.suppress(_WatchedError):
            made.compile("broken", broken)

    gc.disable()
    try:
        round_trip()

        assert 8 == len(watched)
        assert [] == [ref() for ref in watched if ref() is not None]
    finally:
        gc.enable()

    assert 2 == len(telemetry.trips)


def test_number_of_objects_does_not_grow_with_trips(acme: Any, telemetry: Telemetry) -> None:
    instrumentor().instrument(tracer_provider=TracerProvider(shutdown_on_exit=False))

    def rounds(count: int) -> int:
        for number in range(count):
            made = acme.Compiler()
            made.compile(f"k{number}", lambda made=made: made.compile("inner"))
            with contextlib.suppress(ArithmeticError):
                made.compile("broken", failing(ArithmeticError()))
        telemetry.trips.clear()
        gc.collect()
        return len(gc.get_objects())

    before = rounds(50)
    after = rounds(3_400)  # 10,200 trips

    assert after - before < 100


def test_trip_in_a_context_that_lives_on_keeps_nothing_of_the_program(
    acme: Any, telemetry: Telemetry
) -> None:
    def read(call: Call) -> Generator[Begin, OpenTrip, None]:
        done = yield Begin("acme.k", "acme")
        done.outcome = COMPILED
        done.set_source("text " * 1000)
        done.set_ir("text " * 1000)
        done.notes["something"] = done.result

    instrumentor(compile_point(read)).instrument(level="full")
    contexts: list[contextvars.Context] = []
    kept: list[OpenTrip] = []

    def body() -> None:
        contexts.append(contextvars.copy_context())
        current = trip.current()
        assert current is not None
        kept.append(current)

    acme.Compiler().compile("k", body)
    (open_trip,) = kept

    assert contexts[0].run(trip.current) is None
    assert 5000 == len(str(telemetry.trips[0].source))
    assert (None, None, None, None) == (open_trip.result, open_trip.error, open_trip.ir, open_trip.source)
    assert {} == open_trip.notes


def test_every_attribute_is_a_str_an_int_or_a_bool(compiler: Any, telemetry: Telemetry) -> None:
    compiler.compile("k")
    with contextlib.suppress(ArithmeticError):
        compiler.compile("broken", failing(ArithmeticError()))
    attributes = [
        (name, value) for span in telemetry.spans for name, value in (span.attributes or {}).items()
    ]

    assert len(attributes) > 20
    assert [] == [each for each in attributes if type(each[1]) not in (str, int, bool)]
