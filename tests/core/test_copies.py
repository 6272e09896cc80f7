"""A function that stands in more places than one."""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from acme_instrumentor import instrumentor
from telemetry import Telemetry

from otel_kernel.patching import Point
from otel_kernel.records import CompilationOutcome
from otel_kernel.shapes import Call, trip
from otel_kernel.trip import Begin, OpenTrip

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

HOLDERS: list[Any] = []


@pytest.fixture
def holder() -> Iterator[Any]:
    """An object that holds a copy of acme's `build` when it is told to."""
    held = SimpleNamespace()
    HOLDERS.append(held)
    yield held
    HOLDERS.clear()


def read_build(call: Call) -> Generator[Begin, OpenTrip, None]:
    trip = yield Begin(kernel=f"acme.{call.argument('name')}", layer="acme")
    trip.outcome = CompilationOutcome.COMPILED


def copies() -> Iterator[tuple[Any, str]]:
    import sys

    yield sys.modules["acme"], "build"
    for held in HOLDERS:
        yield held, "build"


def point() -> Point:
    return Point("acme.compiler", "build", trip(read_build), ("name",), copied=True, copies=copies)


def test_every_copy_is_the_same_wrapper_and_is_put_back(acme: Any, telemetry: Telemetry, holder: Any) -> None:
    original = holder.build = acme.compiler.build
    made = instrumentor(point())
    made.instrument()

    assert acme.build is acme.compiler.build is holder.build is not original

    holder.build("k")
    made.uninstrument()

    assert [original] * 3 == [acme.build, acme.compiler.build, holder.build]
    assert ["acme.k"] == [trip.kernel for trip in telemetry.trips]


def test_copy_that_is_taken_meanwhile_is_put_back(acme: Any, holder: Any) -> None:
    original = acme.compiler.build
    made = instrumentor(point())
    made.instrument()
    holder.build = acme.compiler.build
    made.uninstrument()

    assert original is holder.build


def test_copy_that_another_tool_has_wrapped_is_wrapped_as_it_is(
    acme: Any, telemetry: Telemetry, holder: Any
) -> None:
    original = acme.compiler.build
    seen: list[str] = []

    def theirs(name: str) -> Any:
        seen.append(name)
        return original(name)

    holder.build = theirs
    made = instrumentor(point())
    made.instrument()
    holder.build("k")
    acme.build("other")
    made.uninstrument()

    assert theirs is holder.build
    assert original is acme.build
    assert ["k"] == seen
    assert ["acme.k", "acme.other"] == [trip.kernel for trip in telemetry.trips]


def test_copy_with_ours_inside_is_left_as_it_is(acme: Any, telemetry: Telemetry, holder: Any) -> None:
    import functools

    made = instrumentor(point())
    made.instrument()
    ours = acme.build

    @functools.wraps(ours)
    def theirs(*args: Any, **kwargs: Any) -> Any:
        return ours(*args, **kwargs)

    holder.build = theirs
    made.uninstrument()
    made.instrument()
    holder.build("k")
    acme.build("other")
    made.uninstrument()

    assert theirs is holder.build
    assert ["acme.other"] == [trip.kernel for trip in telemetry.trips]


def test_holder_without_the_attribute_gets_none(acme: Any, holder: Any) -> None:
    made = instrumentor(point())
    made.instrument()
    made.uninstrument()

    assert {} == vars(holder)


def test_wrapper_is_pickled_as_the_original(acme: Any) -> None:
    made = instrumentor(point())
    made.instrument()

    assert acme.build is pickle.loads(pickle.dumps(acme.build))
    assert b"otel_kernel" not in pickle.dumps(acme.build)

    made.uninstrument()
