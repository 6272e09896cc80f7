"""Which Python function a module is made of, noted when JAX lowers it and asked when the module compiles."""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
from jax._src import core

from otel_kernel.instrumentors.jax import events
from otel_kernel.shapes import Call

_LIBRARY = str(Path(jax.__file__).parent) + os.sep
_SOURCES = _LIBRARY + "_src" + os.sep
# Primitives whose function cannot be seen in them, and is the program's.
_OPAQUE = frozenset({"call_exported", "shard_map", "xla_pmap"})


@dataclass(frozen=True, slots=True)
class Lowered:
    """The function of a module."""

    kernel: str
    internal: bool
    """Whether it is a function of JAX's library with no function of the program inside."""
    function: str | None
    file: str | None
    line: int | None
    stages: dict[str, int] = field(default_factory=dict[str, int])
    """Times of what came before the trip, in ns; taken by the first trip of the module."""


# Modules live as long as JAX keeps them for another compilation; what is known of them goes with them.
_lowered: weakref.WeakKeyDictionary[Any, Lowered] = weakref.WeakKeyDictionary()


def lowered(module: Any) -> Lowered | None:
    """Return what is known of a module, or None if it was lowered before JAX was instrumented."""
    return _lowered.get(module)


def read_lowering(call: Call) -> Generator[None, None, None]:
    """Read `mlir.lower_jaxpr_to_module`."""
    jaxpr = _open(call.argument("jaxpr"))
    # Before the call, which may trace and lower other functions on its way.
    trace = events.take_trace(jaxpr.debug_info.func_name)
    yield
    if call.error is None:
        function = _describe(jaxpr)
        if trace is not None:
            function.stages["trace"] = trace
        _lowered[call.result.module] = function
        events.expect_lowering(function.stages)


def _describe(jaxpr: Any) -> Lowered:
    info = jaxpr.debug_info
    name, file, line = info.func_name, info.func_filename, info.func_lineno
    how = info.traced_for
    if file is None or not file.startswith(_LIBRARY):
        return Lowered(f"{how}({name})", False, name, file, line)
    inner = next(_functions_of_program(jaxpr), None)
    if inner is None:
        return Lowered(f"{how}({name})", _is_library(jaxpr, file), name, file, line)
    return Lowered(f"{how}({name}({inner[0]}))", False, *inner)


def _functions_of_program(jaxpr: Any) -> Iterator[tuple[str, str | None, int | None]]:
    """Yield name, file and line of the functions inside that are not JAX's."""
    for equation, inside in _equations(jaxpr):
        if equation.primitive.name == "call_exported":
            yield equation.params["exported"].fun_name, None, None
        for each in inside:
            info = each.debug_info
            if info.func_filename is not None and not info.func_filename.startswith(_LIBRARY):
                yield info.func_name, info.func_filename, info.func_lineno


def _is_library(jaxpr: Any, file: str) -> bool:
    """Whether a function that JAX has written is its library's, and does not only carry one of the program.

    An eager operation is a function in `dispatch.py` around one primitive. If that holds functions, such as
    the body of a loop, they may be made of the program's by one of JAX's.
    """
    if not file.startswith(_SOURCES):
        return False
    eager = Path(file).name == "dispatch.py"
    return not any(
        equation.primitive.name in _OPAQUE or (eager and inside) for equation, inside in _equations(jaxpr)
    )


def _equations(jaxpr: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Yield every equation, at any depth, with the jaxprs that it holds."""
    waiting = deque([jaxpr])
    seen: set[int] = set()
    while waiting:
        current = waiting.popleft()
        if id(current) in seen:
            continue
        seen.add(id(current))
        for equation in current.eqns:
            inside = [_open(each) for each in core.jaxprs_in_params(equation.params)]
            yield equation, inside
            waiting += inside


def _open(jaxpr: Any) -> Any:
    """Return a jaxpr without the constants that close it."""
    return getattr(jaxpr, "jaxpr", jaxpr)
