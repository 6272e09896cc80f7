"""A callback where a runtime takes just one."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from acme_instrumentor import compile_point, instrumentor
from checks import messages
from telemetry import Telemetry

from otel_kernel import semconv
from otel_kernel.slots import Slot
from otel_kernel.trip import OpenTrip

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


class Knobs:
    """Where acme keeps its listener."""

    listener: Any = None


@pytest.fixture
def knobs(acme: Any) -> Any:
    """The knobs of acme, which calls its listener while it compiles."""
    acme.compiler.knobs = Knobs()
    return acme.compiler.knobs


def read_reason(trip: OpenTrip, event: Mapping[str, Any]) -> None:
    trip.set(semconv.REASON, event["reason"])


def instrument(read: Any = read_reason, name: str = "knobs.listener", *, optional: bool = False) -> Any:
    made = instrumentor(compile_point(), Slot("acme.compiler", name, read, optional))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a slot stands among points
    made.instrument()
    return made


def compile_with(acme: Any, knobs: Any) -> None:
    def body() -> None:
        if knobs.listener is not None:
            knobs.listener(reason="it is new")

    acme.Compiler().compile("k", body)


def test_ours_tells_the_trip_and_is_gone_afterwards(acme: Any, telemetry: Telemetry, knobs: Any) -> None:
    made = instrument()
    compile_with(acme, knobs)
    knobs.listener(reason="outside of any trip")
    made.uninstrument()

    assert ["it is new"] == [trip.attributes[semconv.REASON] for trip in telemetry.trips]
    assert {} == vars(knobs)


def test_a_callback_outside_of_any_trip_can_be_read(acme: Any, telemetry: Telemetry, knobs: Any) -> None:
    reasons: list[str] = []
    slot = Slot(
        "acme.compiler",
        "knobs.listener",
        read_reason,
        read_outside=lambda event: reasons.append(event["reason"]),
    )
    made = instrumentor(compile_point(), slot)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a slot stands among points
    made.instrument()
    compile_with(acme, knobs)
    knobs.listener(reason="outside of any trip")
    made.uninstrument()

    assert ["outside of any trip"] == reasons
    assert ["it is new"] == [trip.attributes[semconv.REASON] for trip in telemetry.trips]


def test_who_was_there_is_called_and_put_back(acme: Any, telemetry: Telemetry, knobs: Any) -> None:
    events: list[dict[str, Any]] = []

    def theirs(**event: Any) -> str:
        events.append(event)
        return "theirs"

    knobs.listener = theirs
    made = instrument()
    compile_with(acme, knobs)

    assert "theirs" == knobs.listener(reason="once more")

    made.uninstrument()

    assert [{"reason": "it is new"}, {"reason": "once more"}] == events
    assert theirs is knobs.listener
    assert 1 == len(telemetry.trips)


def test_who_comes_after_us_stays(acme: Any, telemetry: Telemetry, knobs: Any) -> None:
    made = instrument()
    ours = knobs.listener

    def theirs(**event: Any) -> None:
        ours(**event)

    knobs.listener = theirs
    made.uninstrument()
    compile_with(acme, knobs)

    assert theirs is knobs.listener
    assert [] == telemetry.trips


@pytest.mark.faults_logged
def test_fault_of_a_reader_reaches_nobody(
    acme: Any, telemetry: Telemetry, knobs: Any, caplog: pytest.LogCaptureFixture
) -> None:
    called: list[str] = []
    knobs.listener = lambda **event: called.append(event["reason"])  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType] - of any event
    instrument(lambda _trip, event: event["no such word"])  # pyright: ignore[reportUnknownLambdaType] - of any event
    compile_with(acme, knobs)

    assert ["it is new"] == called
    assert 1 == len(telemetry.trips)
    assert 1 == len(messages(caplog))


@pytest.mark.parametrize("name", ["knobs.no_such_slot", "no_such_knobs.listener"])
def test_slot_that_is_missing_refuses_the_runtime(
    knobs: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = instrument(name=name)

    assert {"refused": 1} == made.state_of_points()
    assert 1 == len(messages(caplog))
    assert f"acme.compiler.{name} does not exist" in messages(caplog)[0]


def test_slot_that_may_be_missing_is_counted(knobs: Any) -> None:
    made = instrument(name="knobs.no_such_slot", optional=True)

    assert {"patched": 1, "missing": 1} == made.state_of_points()


def test_slot_of_a_module_is_one_too(acme: Any, telemetry: Telemetry) -> None:
    acme.compiler.hook = None
    made = instrument(name="hook")
    compile_with(acme, SimpleNamespace(listener=acme.compiler.hook))
    made.uninstrument()

    assert "it is new" == telemetry.trips[0].attributes[semconv.REASON]
    assert acme.compiler.hook is None
