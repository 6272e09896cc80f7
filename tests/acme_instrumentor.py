"""Instruments acme, the small runtime of the core's tests."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, ClassVar

from otel_kernel.instrumentor import KernelInstrumentor
from otel_kernel.patching import Point
from otel_kernel.records import CompilationOutcome
from otel_kernel.shapes import Call, ProbeReader, TripReader, probe, trip
from otel_kernel.trip import Begin, OpenTrip


def read_compile(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `Compiler.compile`."""
    with call.instance.lock:
        if call.argument("name") in call.instance.kernels:
            return
        done = yield Begin(kernel=f"acme.{call.argument('name')}", layer="acme")
        if done.error is None:
            done.outcome = CompilationOutcome.LOADED if "found" in done.notes else CompilationOutcome.COMPILED


def read_find(call: Call, open_trip: OpenTrip) -> Generator[None, None, None]:
    """Read `store.find`."""
    yield
    if call.result is not None:
        open_trip.notes["found"] = True


def compile_point(
    read: TripReader = read_compile,
    *,
    name: str = "Compiler.compile",
    parameters: tuple[str, ...] = ("name",),
    copied: bool = False,
) -> Point:
    """Return the point where acme compiles."""
    return Point("acme.compiler", name, trip(read), parameters, copied=copied)


def find_point(read: ProbeReader = read_find, *, name: str = "find", optional: bool = False) -> Point:
    """Return the point where acme looks into its store."""
    return Point("acme.store", name, probe(read), ("name",), optional=optional)


POINTS = (compile_point(), find_point())


class AcmeInstrumentor(KernelInstrumentor):
    """Instruments acme."""

    runtime: ClassVar[str] = "acme"
    module: ClassVar[str] = "acme"
    requires: ClassVar[str] = "acme-compiler >= 1, < 2"

    def points(self) -> tuple[Point, ...]:
        """Return the points in acme's compiler and store."""
        return POINTS


def instrumentor(*table: Point, requires: str = AcmeInstrumentor.requires) -> KernelInstrumentor:
    """Return the one object of a new instrumentor class with these points.

    Args:
        *table: the points, by default both of `POINTS`.
        requires: the supported versions.
    """

    def points(_self: KernelInstrumentor) -> tuple[Point, ...]:
        return table or POINTS

    namespace: dict[str, Any] = {"requires": requires, "points": points, "_instance": None}
    made: Callable[[], KernelInstrumentor] = type("AcmeInstrumentor", (AcmeInstrumentor,), namespace)
    return made()
