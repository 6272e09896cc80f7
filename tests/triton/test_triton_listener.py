"""Triton has one place for a listener, and it is not ours alone."""

# Triton has no types that say enough.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
import triton_kernels as kernels
from telemetry import Telemetry
from triton_device import floats

from otel_kernel import semconv
from otel_kernel.instrumentors.triton import TritonInstrumentor
from otel_kernel.records import CompilationOutcome

knobs: Any = import_module("triton.knobs")


class Tool:
    """Another tool, which counts hits and misses."""

    def __init__(self) -> None:
        self.hits: list[bool] = []

    def __call__(self, *, cache_hit: bool, **_event: Any) -> None:
        self.hits.append(cache_hit)


@pytest.fixture(autouse=True)
def _no_listener() -> Iterator[None]:
    yield
    vars(knobs.compilation).pop("listener", None)


def compile_and_load(restart: Any) -> None:
    kernels.scale[(1,)](floats(64), size=64)
    restart()
    kernels.scale[(1,)](floats(64), size=64)


def check_outcomes(telemetry: Telemetry, *, told_by: str) -> None:
    assert [CompilationOutcome.COMPILED, CompilationOutcome.LOADED] == [
        trip.outcome for trip in telemetry.trips
    ]
    assert {told_by} == {trip.attributes[semconv.OUTCOME_FROM] for trip in telemetry.trips}


def test_a_tool_before_us_is_told_too(telemetry: Telemetry, store: object, restart: Any) -> None:
    restart()
    knobs.compilation.listener = tool = Tool()
    TritonInstrumentor().instrument()
    compile_and_load(restart)
    TritonInstrumentor().uninstrument()

    assert [False, True] == tool.hits
    assert tool is knobs.compilation.listener
    check_outcomes(telemetry, told_by="runtime")


def test_a_tool_after_us_that_calls_us(triton_telemetry: Telemetry, restart: Any) -> None:
    tool, ours = Tool(), knobs.compilation.listener

    def listener(**event: Any) -> None:
        tool(**event)
        ours(**event)

    knobs.compilation.listener = listener
    compile_and_load(restart)
    TritonInstrumentor().uninstrument()

    assert listener is knobs.compilation.listener
    check_outcomes(triton_telemetry, told_by="runtime")

    restart()
    kernels.scale[(1,)](floats(64), size=64)  # it still calls us, who pass it on

    assert [False, True, True] == tool.hits
    assert 2 == len(triton_telemetry.trips)
    vars(knobs.compilation).pop("listener")


def test_a_tool_after_us_that_takes_our_place(triton_telemetry: Telemetry, restart: Any) -> None:
    ours = knobs.compilation.listener
    knobs.compilation.listener = tool = Tool()
    compile_and_load(restart)
    knobs.compilation.listener = ours

    assert [False, True] == tool.hits
    check_outcomes(triton_telemetry, told_by="inferred")
    assert semconv.STAGE + "ttir" not in triton_telemetry.trips[0].attributes


def test_a_tool_that_took_our_place_and_gave_it_back(triton_telemetry: Telemetry, restart: Any) -> None:
    with knobs.compilation.scope():
        knobs.compilation.listener = Tool()
    compile_and_load(restart)

    check_outcomes(triton_telemetry, told_by="runtime")


def test_instrumenting_again_under_a_tool_tells_once(triton_telemetry: Telemetry, restart: Any) -> None:
    ours = knobs.compilation.listener
    tool = Tool()

    def listener(**event: Any) -> None:
        tool(**event)
        ours(**event)

    knobs.compilation.listener = listener
    TritonInstrumentor().uninstrument()
    TritonInstrumentor().instrument()
    compile_and_load(restart)
    TritonInstrumentor().uninstrument()

    assert [False, True] == tool.hits
    assert listener is knobs.compilation.listener
    check_outcomes(triton_telemetry, told_by="runtime")
    vars(knobs.compilation).pop("listener")


def test_what_another_listener_raises_is_the_program_s(
    telemetry: Telemetry, store: object, restart: Any
) -> None:
    def listener(**_event: Any) -> None:
        raise LookupError("the other one")

    restart()
    knobs.compilation.listener = listener
    TritonInstrumentor().instrument()
    with pytest.raises(LookupError, match="the other one"):
        kernels.scale[(1,)](floats(64), size=64)
    TritonInstrumentor().uninstrument()

    assert ["LookupError"] == [trip.error_type for trip in telemetry.trips]


@pytest.mark.faults_logged
def test_ours_never_raises(
    triton_telemetry: Telemetry, restart: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ours = knobs.compilation.listener

    def listener(**event: Any) -> None:
        ours(**{name: value for name, value in event.items() if name != "cache_hit"})

    knobs.compilation.listener = listener
    compile_and_load(restart)
    knobs.compilation.listener = ours

    check_outcomes(triton_telemetry, told_by="inferred")
    assert 1 == len(caplog.records)
