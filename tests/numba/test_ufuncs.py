"""Ufuncs, gufuncs and C callbacks: what is compiled beside `@numba.njit`."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numba.core.errors import TypingError
from telemetry import Telemetry

from otel_kernel import pipeline
from otel_kernel.records import CompilationOutcome, Trip

numba: Any = import_module("numba")  # its decorators are typed in part only
FUNCTION, LOOP = "numba", "numba.ufunc"
ONES = np.ones(3)


def layers(trips: list[Trip]) -> list[tuple[str, str, object]]:
    """Return name, layer and specialization of kernels that are not Numba's own."""
    return [
        (trip.kernel.rpartition(".")[2], trip.layer, trip.attributes["compute.kernel.specialization"])
        for trip in sorted(trips, key=lambda trip: trip.seq)
        if "compute.kernel.internal" not in trip.attributes
    ]


def test_an_eager_ufunc_is_a_function_and_a_loop_for_each_signature(told: Telemetry) -> None:
    @numba.vectorize(["float32(float32)", "float64(float64)"])
    def f(x: float) -> float:
        return x + 1

    at_decoration = layers(told.trips)
    f(ONES)

    assert [
        ("f", FUNCTION, "(float32,)"),
        ("f", LOOP, "(float32,)"),
        ("f", FUNCTION, "(float64,)"),
        ("f", LOOP, "(float64,)"),
    ] == sorted(at_decoration, key=lambda each: (each[2], each[1]))
    assert 4 == len(told.trips)


def test_a_dynamic_ufunc_is_compiled_at_its_first_call(told: Telemetry) -> None:
    @numba.vectorize
    def f(x: float) -> float:
        return x + 1

    assert [] == told.trips

    f(ONES)
    f(ONES)

    assert [("f", FUNCTION, "(float64,)"), ("f", LOOP, "(float64,)")] == layers(told.trips)


def test_what_a_ufunc_tells(told: Telemetry) -> None:
    pipeline.configure(level="full")

    @numba.vectorize
    def f(x: float) -> float:
        return x + 1

    f(ONES)
    function, loop = told.trips

    assert isinstance(function.ir, str)
    assert isinstance(function.source, str)
    assert function.attributes["compute.kernel.stage.native_lowering"]
    assert "disabled" == function.attributes["compute.kernel.key.absent_reason"]
    assert "unsupported" == loop.attributes["compute.kernel.key.absent_reason"]
    assert (None, None) == (loop.ir, loop.source)
    assert function.kernel == loop.kernel
    assert {CompilationOutcome.COMPILED} == {function.outcome, loop.outcome}
    assert {True} == {trip.attributes["compute.kernel.device_loaded"] for trip in told.trips}


def test_a_ufunc_called_by_a_function_is_compiled_inside_it(told: Telemetry) -> None:
    @numba.vectorize
    def inner(x: float) -> float:
        return x + 1

    @numba.njit
    def outer(a: Any) -> Any:
        return inner(a)

    outer(ONES)
    (outer_trip,) = [trip for trip in told.trips if trip.kernel.endswith(".outer")]
    inner_trips = [trip for trip in told.trips if trip.kernel.endswith(".inner")]

    assert {FUNCTION, LOOP} == {trip.layer for trip in inner_trips}
    assert {outer_trip.seq} == {trip.parent_seq for trip in inner_trips}


def test_a_ufunc_that_cannot_be_compiled_fails_its_function(told: Telemetry) -> None:
    @numba.vectorize
    def f(x: Any) -> Any:
        return x.no_such_attribute

    with pytest.raises(TypingError):
        f(ONES)

    assert [(FUNCTION, "failed")] == [(trip.layer, trip.state) for trip in told.trips]


def test_an_eager_gufunc_is_a_function_and_a_loop(told: Telemetry) -> None:
    @numba.guvectorize(["(float64[:], float64[:])"], "(n)->(n)")
    def f(values: Any, out: Any) -> None:
        for i in range(len(values)):
            out[i] = values[i]

    f(ONES)
    signature = "(array(float64, 1d, A), array(float64, 1d, A))"

    assert [("f", FUNCTION, signature), ("f", LOOP, signature)] == layers(told.trips)
    assert {"disabled"} == {trip.attributes["compute.kernel.key.absent_reason"] for trip in told.trips}


def test_a_dynamic_gufunc_is_compiled_at_its_first_call(told: Telemetry) -> None:
    @numba.guvectorize("(n)->(n)")
    def f(values: Any, out: Any) -> None:
        for i in range(len(values)):
            out[i] = values[i]

    assert [] == told.trips

    for _ in range(2):
        f(ONES, np.zeros(3))

    assert [FUNCTION, LOOP] == [layer for _, layer, _ in layers(told.trips)]


def test_a_ufunc_for_several_threads_has_its_loop_told_too(told: Telemetry) -> None:
    @numba.vectorize(["float64(float64)"], target="parallel")
    def f(x: float) -> float:
        return x + 1

    @numba.guvectorize(["(float64[:], float64[:])"], "(n)->(n)", target="parallel")
    def g(values: Any, out: Any) -> None:
        for i in range(len(values)):
            out[i] = values[i]

    assert [2.0] * 3 == list(f(ONES))
    assert [1.0] * 3 == list(g(ONES))
    assert [("f", FUNCTION), ("f", LOOP), ("g", FUNCTION), ("g", LOOP)] == [
        (name, layer) for name, layer, _ in layers(told.trips)
    ]


def test_a_callback_is_a_trip_at_its_decoration(told: Telemetry) -> None:
    pipeline.configure(level="full")

    @numba.cfunc("float64(float64)")
    def f(x: float) -> float:
        return x * 2

    (trip,) = told.trips

    assert 3.0 == f.ctypes(1.5)
    assert [("f", FUNCTION, "(float64,)")] == layers(told.trips)
    assert CompilationOutcome.COMPILED is trip.outcome
    assert isinstance(trip.ir, str)
    assert isinstance(trip.source, str)
    assert "cfunc" in trip.source
    assert trip.attributes["compute.kernel.stage.native_lowering"]
    assert "disabled" == trip.attributes["compute.kernel.key.absent_reason"]
