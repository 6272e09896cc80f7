"""Functions on their way through Numba's compiler, in this process."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numba import jit, njit, types
from numba.core.errors import TypingError
from numba.extending import overload
from numba.misc.special import literally
from telemetry import Telemetry

from otel_kernel import pipeline
from otel_kernel.records import CompilationOutcome, Trip

HERE = f"{__name__}."
SPECIALIZATION = "compute.kernel.specialization"


def short(trip: Trip) -> str:
    """Return the kernel's name without this module and this test."""
    return trip.kernel.rpartition("<locals>.")[2] if trip.kernel.startswith(HERE) else trip.kernel


def own(told: Telemetry) -> list[Trip]:
    """Return the trips of kernels that are not Numba's own, in the order in which they started."""
    trips = [trip for trip in told.trips if "compute.kernel.internal" not in trip.attributes]
    return sorted(trips, key=lambda trip: trip.seq)


def ends(told: Telemetry) -> list[tuple[str, str]]:
    """Return the kernel of each of these trips and how it ended."""
    return [(short(trip), (trip.outcome or trip.abandoned or trip.state)) for trip in own(told)]


def parents(told: Telemetry) -> dict[str, str | None]:
    """Return the kernel inside which each kernel was compiled."""
    by_seq = {trip.seq: short(trip) for trip in told.trips}
    return {
        short(trip): by_seq[trip.parent_seq] if trip.parent_seq is not None else None for trip in own(told)
    }


def test_a_lazy_function_is_compiled_once_for_each_signature(told: Telemetry) -> None:
    @njit
    def f(x: float) -> float:
        return x + 1

    assert (2, 2, 2.5) == (f(1), f(1), f(1.5))
    assert ["(int64,)", "(float64,)"] == [trip.attributes[SPECIALIZATION] for trip in told.trips]


def test_an_eager_function_is_compiled_at_its_decoration(told: Telemetry) -> None:
    @njit(["float64(float64)", types.int64(types.int64)])
    def f(x: float) -> float:
        return x + 1

    assert [("f", "compiled"), ("f", "compiled")] == ends(told)

    f(1.5)
    f(1)

    assert 2 == len(told.trips)


def test_what_a_compiled_function_tells(told: Telemetry) -> None:
    pipeline.configure(level="full")

    @njit(fastmath=True, error_model="numpy")
    def f(x: float, y: int) -> float:
        return x / y

    f(1.5, 2)
    (trip,) = told.trips
    (span,) = told.spans
    attributes = trip.attributes
    code = f.py_func.__code__

    assert f"{HERE}test_what_a_compiled_function_tells.<locals>.f" == trip.kernel
    assert ("numba", "numba", CompilationOutcome.COMPILED) == (trip.runtime, trip.layer, trip.outcome)
    assert (None, "disabled") == (trip.key, attributes["compute.kernel.key.absent_reason"])
    assert "(float64, int64)" == attributes[SPECIALIZATION]
    assert (code.co_filename, code.co_firstlineno) == (
        attributes["code.file.path"],
        attributes["code.line.number"],
    )
    assert isinstance(trip.ir, str)
    assert "arg(0, name=x)" in trip.ir
    assert isinstance(trip.source, str)
    assert "fdiv fast double" in trip.source
    assert str(attributes["compute.kernel.build"]).startswith("numba ")
    assert str(attributes["compute.kernel.target"]).startswith("cpu:")
    assert attributes["compute.kernel.device_loaded"] is True
    assert not [name for name in attributes if name.startswith("compute.kernel.store")]
    assert 0 < int(attributes["compute.kernel.stage.native_lowering"]) <= (trip.duration_ns or 0)
    assert "otel_kernel.numba" == (span.instrumentation_scope and span.instrumentation_scope.name)


def test_a_callee_is_a_trip_inside_its_callers(told: Telemetry) -> None:
    @njit
    def inner(x: int) -> int:
        return x * 2

    @njit
    def outer(x: int) -> int:
        return int(inner(x) + inner(x + 1) + inner(x + 2))

    assert 18 == outer(2)
    assert 4 == inner(2)

    # Three calls, for each of which Numba enters `compile` of the callee: one trip.
    assert [("outer", "compiled"), ("inner", "compiled")] == ends(told)
    assert {"outer": None, "inner": "outer"} == parents(told)

    named = {span.name.rpartition(".")[2]: span for span in told.spans}
    inner_span, outer_span = named["inner"], named["outer"]

    assert outer_span.context is not None
    assert inner_span.parent is not None
    assert outer_span.context.span_id == inner_span.parent.span_id
    assert (outer_span.start_time or 0) <= (inner_span.start_time or 0)
    assert (inner_span.end_time or 0) <= (outer_span.end_time or 0)


def test_recursion_is_one_trip(told: Telemetry) -> None:
    @njit
    def factorial(n: int) -> int:
        return 1 if n < 2 else n * factorial(n - 1)

    assert 120 == factorial(5)
    assert [("factorial", "compiled")] == ends(told)


def test_mutual_recursion_is_a_trip_for_each_function(told: Telemetry) -> None:
    namespace: dict[str, Any] = {"njit": njit, "__name__": __name__}
    exec(
        "@njit\ndef even(n):\n    return True if n == 0 else odd(n - 1)\n"
        "@njit\ndef odd(n):\n    return False if n == 0 else even(n - 1)\n",
        namespace,
    )

    assert namespace["even"](4) is True
    assert {f"{HERE}even": None, f"{HERE}odd": f"{HERE}even"} == {
        trip.kernel: f"{HERE}even" if trip.parent_seq is not None else None for trip in told.trips
    }
    assert {CompilationOutcome.COMPILED} == {trip.outcome for trip in told.trips}


def test_functions_of_numba_itself_are_marked(told: Telemetry) -> None:
    @njit
    def f(n: int) -> Any:
        return np.linspace(0, 1, n)

    f(3)
    marked = {trip.kernel for trip in told.trips if trip.attributes.get("compute.kernel.internal")}

    assert marked
    assert all(kernel.startswith("numba.") for kernel in marked)
    assert {"f"} == {short(trip) for trip in told.trips if trip.kernel not in marked}


def _choose(x: Any) -> Any:
    """Stand for the overloads below."""
    raise NotImplementedError


@overload(_choose)
def _choose_nothing(x: Any) -> Any:
    raise TypingError("this candidate fits nothing")


@overload(_choose)
def _choose_broken(x: Any) -> Any:
    def body(x: Any) -> Any:
        return x.no_such_attribute

    return body


@overload(_choose)
def _choose_number(x: Any) -> Any:
    def body(x: Any) -> Any:
        return x + 40

    return body


def test_candidates_of_an_overload_that_fail_are_no_errors(told: Telemetry) -> None:
    @njit
    def f(x: int) -> int:
        return int(_choose(x))

    assert 42 == f(2)

    states = {short(trip): trip.state for trip in told.trips}

    assert ("record", "abandoned", "record") == (states["f"], states["body"], told.trips[-1].state)
    assert "failed" not in states.values()
    assert {"nested"} == {trip.abandoned for trip in told.trips if trip.abandoned}
    assert {"UNSET"} == {span.status.status_code.name for span in told.spans}


def test_a_literal_argument_is_a_retry_and_then_a_record(told: Telemetry) -> None:
    @njit
    def f(x: int, n: int) -> int:
        return x * int(literally(n))

    assert 6 == f(2, 3)
    assert [("f", "retry"), ("f", "compiled")] == ends(told)
    assert ["(int64, int64)", "(int64, Literal[int](3))"] == [
        trip.attributes[SPECIALIZATION] for trip in own(told)
    ]


def test_a_failed_function_names_the_place_and_no_text(told: Telemetry) -> None:
    @njit
    def f(x: int) -> int:
        return int(x.no_such_attribute)  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType] - that is what fails

    line = f.py_func.__code__.co_firstlineno + 2
    for _ in range(2):
        with pytest.raises(TypingError):
            f(1)

    # The second time Numba raises what it has kept of the first.
    assert ["failed", "failed"] == [trip.state for trip in told.trips]
    assert {f"numba.core.errors.TypingError at {__file__}:{line}"} == {trip.message for trip in told.trips}
    assert {"ERROR"} == {span.status.status_code.name for span in told.spans}


def test_an_error_in_a_callee_is_one_error(told: Telemetry) -> None:
    @njit
    def inner(x: Any) -> Any:
        return x.no_such_attribute

    @njit
    def outer(x: int) -> int:
        return int(inner(x))

    with pytest.raises(TypingError):
        outer(1)

    states = {
        short(trip): {each.state for each in told.trips if short(each) == short(trip)} for trip in told.trips
    }

    assert {"outer": {"failed"}, "inner": {"abandoned"}} == states


def test_parallel_code_is_part_of_its_function(told: Telemetry) -> None:
    from numba import prange

    @njit(parallel=True)
    def f(n: int) -> float:
        total = 0.0
        for i in prange(n):
            total += i
        return total

    assert 45.0 == f(10)
    assert [("f", "compiled")] == ends(told)
    assert "numba" == told.trips[-1].layer


@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaWarning")
def test_a_lifted_loop_is_a_kernel_of_its_own(told: Telemetry) -> None:
    @jit(forceobj=True, looplift=True)
    def f(n: int) -> int:
        total = 0
        for i in range(n):
            total += i
        return total

    assert 45 == f(10)
    assert 45 == f(10)
    assert [("f", "compiled"), ("f.<loop>", "compiled")] == ends(told)

    function, loop = told.trips

    assert int(function.attributes["code.line.number"]) + 3 == loop.attributes["code.line.number"]
    assert function.attributes["compute.kernel.identity"] != loop.attributes["compute.kernel.identity"]
    assert "unsupported" == loop.attributes["compute.kernel.key.absent_reason"]


def test_a_block_in_object_mode_is_a_kernel_of_its_own(told: Telemetry) -> None:
    from numba import objmode

    @njit
    def f(x: int) -> int:
        y = 0
        with objmode(y="int64"):
            y = int(x) + 1
        return y  # noqa: RET504 - what leaves the block has a name

    assert 4 == f(3)
    assert [("f", "compiled"), ("f.<with>", "compiled")] == ends(told)
    assert "f" == parents(told)["f.<with>"]


def test_closures_lambdas_and_methods_have_readable_names(told: Telemetry) -> None:
    def make(n: int) -> Any:
        @njit
        def closure(x: int) -> int:
            return x + n

        return closure

    class Model:
        @staticmethod
        @njit
        def step(x: int) -> int:
            return x + 1

    lambdas: list[Callable[[int], int]] = [lambda x: x * 2]
    double = njit(lambdas[0])
    assert (3, 4, 2) == (make(1)(2), make(2)(2), Model.step(1))
    assert 4 == double(2)

    test = f"{HERE}test_closures_lambdas_and_methods_have_readable_names.<locals>."
    expected = [
        "make.<locals>.closure",
        "make.<locals>.closure",
        "Model.step",
        "<lambda>",
    ]
    assert [test + name for name in expected] == [trip.kernel for trip in told.trips]


def test_methods_of_a_jitclass_are_trips_inside_generated_ones(told: Telemetry) -> None:
    from numba.experimental.jitclass.decorators import jitclass

    class Counter:
        def __init__(self, count: int) -> None:
            self.count = count

        def next(self) -> int:
            return self.count + 1

    compiled: Any = jitclass([("count", types.int64)])(Counter)
    counter = compiled(1)
    assert (2, 2) == (counter.next(), counter.next())

    generated = "numba.experimental.jitclass."
    own = f"{HERE}test_methods_of_a_jitclass_are_trips_inside_generated_ones.<locals>.Counter."
    kernels = {trip.kernel: trip for trip in told.trips}

    assert {f"{generated}ctor", f"{generated}method", f"{own}__init__", f"{own}next"} <= kernels.keys()
    assert kernels[f"{generated}ctor"].seq == kernels[f"{own}__init__"].parent_seq
    assert kernels[f"{generated}method"].seq == kernels[f"{own}next"].parent_seq
    assert kernels[f"{generated}ctor"].attributes["compute.kernel.internal"] is True
    # The name of the class as a type holds an address, which is no part of the specialization.
    assert "(instance.jitclass.Counter<count:int64>,)" == kernels[f"{own}next"].attributes[SPECIALIZATION]


def test_a_function_as_an_argument_is_told_by_its_code(told: Telemetry) -> None:
    @njit
    def apply(f: Any, x: int) -> Any:
        return f(x)

    lambdas: list[Callable[[int], int]] = [lambda x: x + 1, lambda x: x + 2]
    assert [2, 3] == [apply(njit(each), 1) for each in lambdas]

    first, second = [trip.attributes for trip in told.trips if short(trip) == "apply"]

    assert "0x" not in str(first[SPECIALIZATION])
    assert first[SPECIALIZATION] != second[SPECIALIZATION]
    assert first["compute.kernel.identity"] != second["compute.kernel.identity"]


def test_compile_takes_a_signature_in_every_form(told: Telemetry) -> None:
    @njit
    def f(x: int) -> int:
        return x

    f.compile((types.int64,))
    f.compile("int64(int64)")
    f.compile(sig=types.int64(types.int64))

    assert 1 == len(told.trips)

    f.compile(sig="(float64,)")

    assert ["(int64,)", "(float64,)"] == [trip.attributes[SPECIALIZATION] for trip in told.trips]


@pytest.mark.parametrize("signature", ["no_such_type(int64)", "not a signature", 3, None])
def test_what_is_no_signature_is_the_programs_error(told: Telemetry, signature: object) -> None:
    @njit
    def f(x: int) -> int:
        return x

    dispatcher: Any = f
    with pytest.raises((NameError, SyntaxError, TypeError)):
        dispatcher.compile(signature)

    assert [] == told.trips


def test_recompiling_is_a_trip_for_each_signature(told: Telemetry) -> None:
    @njit
    def f(x: float) -> float:
        return x

    f(1)
    f(1.0)
    f.recompile()

    assert ["(int64,)", "(float64,)"] * 2 == [trip.attributes[SPECIALIZATION] for trip in told.trips]


def test_a_generator_is_a_trip(told: Telemetry) -> None:
    @njit
    def f(n: int) -> Iterator[int]:
        for i in range(n):  # noqa: UP028 - Numba knows no `yield from`
            yield i

    assert [0, 1, 2] == list(f(3))
    assert [("f", "compiled")] == ends(told)


def test_a_compiled_function_dies_with_its_last_reference(told: Telemetry) -> None:
    pipeline.configure(level="full")
    alive: list[weakref.ref[Any]] = []
    for n in range(3):

        @njit
        def f(x: int, n: int = n) -> int:
            return x + n

        f(1)
        alive += [weakref.ref(f), weakref.ref(f.py_func)]
        del f
    gc.collect()

    assert 3 == len(told.trips)
    assert [None] * 6 == [reference() for reference in alive]
