"""Where else Triton's compile function is."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import triton.compiler.compiler as compiler
from triton.runtime.jit import JITFunction


def copies_of_compile() -> Iterator[tuple[Any, str]]:
    """Yield the other names of `triton.compiler.compiler.compile` in modules, then each JITFunction alive.

    A program that has said `from triton.compiler import compile` before us has such a name. A JITFunction
    copies the function at its first launch on a device. Triton's own registry of them forgets one of two that
    share a name.
    """
    yield from (
        (sys.modules[name], "compile") for name in ("triton", "triton.compiler") if name in sys.modules
    )
    yield from _names_in_modules()
    for thing in gc.get_objects():
        if issubclass(type(thing), JITFunction):  # not isinstance, which asks proxies for their class
            yield thing, "compile"


def _names_in_modules() -> Iterator[tuple[Any, str]]:
    functions: list[Any] = [compiler.compile]  # and what lies under wrappers
    while (wrapped := getattr(functions[-1], "__wrapped__", None)) is not None and len(functions) < 100:
        functions.append(wrapped)
    for module in list(sys.modules.values()):
        if module is compiler or not issubclass(type(module), ModuleType):
            continue
        namespace = object.__getattribute__(module, "__dict__")  # a lazy one is not to be imported for this
        for name, held in list(namespace.items()):
            if any(held is function for function in functions):
                yield module, name
