"""Scripts about putting wrappers in place and taking them away."""

from __future__ import annotations

import gc
import inspect
import sys
import weakref
from typing import Any

from conformance.harness import instrumentor, kernels, points, raised_by, value, watch, wrap_points
from otel_kernel.patching import Point
from otel_kernel.records import CompilationRecord, Trip
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip

_OURS = (Begin, Call, CompilationRecord, OpenTrip, Trip)


def _standing(point: Any) -> Any:
    """Return what stands at a point, descriptors unbound."""
    owner: Any = sys.modules[point.module]
    *path, name = point.name.split(".")
    for part in path:
        owner = getattr(owner, part)
    return inspect.getattr_static(owner, name)


def restored() -> None:
    """Instrument and uninstrument three times, with a trip each time."""
    table = points()
    originals = {str(point): _standing(point) for point in table}
    program = kernels()
    made = instrumentor()
    for n in range(3):
        watch(sink=n == 0)
        value(f"not patched {n}", [str(p) for p in table if _standing(p) is originals[str(p)]])
        program.another(n)
        made.uninstrument()
        value(f"not restored {n}", [str(p) for p in table if _standing(p) is not originals[str(p)]])
    program.another(3)


class Tool:
    """Another tool, which wraps the points that we wrap and counts the calls."""

    def __init__(self) -> None:
        self.calls = 0
        wrap_points(self._call)

    def _call(self, wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
        self.calls += 1
        return wrapped(*args, **kwargs)


def another_tool_before() -> None:
    tool = Tool()
    theirs = {str(point): _standing(point) for point in points()}
    watch()
    _use_both(tool)
    value("kept", [name for name, each in theirs.items() if _standing(_named(name)) is not each])


def another_tool_after() -> None:
    watch()
    tool = Tool()
    theirs = {str(point): _standing(point) for point in points() if isinstance(point, Point)}
    _use_both(tool)
    value("kept", [name for name, each in theirs.items() if _standing(_named(name)) is not each])
    instrumentor().instrument()
    value("again", kernels().another(2))


def _named(name: str) -> Any:
    (point,) = [point for point in points() if str(point) == name]
    return point


def _use_both(tool: Tool) -> None:
    program = kernels()
    value("main", program.main())
    value("with us", tool.calls)
    instrumentor().uninstrument()
    program.another(1)
    value("without us", tool.calls)


def kept_alive() -> None:
    """Count what is alive of the trips of many kernels, with us or without us, as the command line says."""
    if sys.argv[2] == "with":
        watch(level="full", sdk=False, sink=False)
        from otel_kernel.pipeline import add_sink

        add_sink(_Counter())
    program = kernels()
    program.another(0)
    references: list[weakref.ref[object]] = []
    for n in range(int(sys.argv[3])):
        references.append(weakref.ref(program.quick(n)))
    for n in range(1, 51):
        program.another(n)
    raised_by(program.failing)
    gc.collect()
    value("alive", sum(reference() is not None for reference in references))
    value("trips", _Counter.seen)
    value("ours", [type(each).__name__ for each in gc.get_objects() if type(each) in _OURS])


class _Counter:
    wants_start = True
    seen = 0

    def started(self, trip: Trip) -> None:
        return

    def finished(self, trip: Trip) -> None:
        _Counter.seen += 1
