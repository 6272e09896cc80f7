"""Where else Triton's compile function is."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

from triton.runtime.jit import JITFunction


def copies_of_compile() -> Iterator[tuple[Any, str]]:
    """Yield the other names of `triton.compiler.compiler.compile`, then each JITFunction alive.

    A JITFunction copies it at its first launch on a device. Triton's own registry of them forgets one of two
    that share a name.
    """
    for name in ("triton", "triton.compiler"):
        module = sys.modules.get(name)
        if module is not None:
            yield module, "compile"
    for thing in gc.get_objects():
        if issubclass(type(thing), JITFunction):  # not isinstance, which asks proxies for their class
            yield thing, "compile"
