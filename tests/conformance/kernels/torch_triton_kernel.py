"""Kernels of Triton as Inductor writes them, for a device that is not there unless the environment names one."""

# Torch is half typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false, reportMissingTypeStubs=false

from __future__ import annotations

import logging
import threading
from typing import Any

import inductor_kernels
from inductor_kernels import compile_kernel, launch, source_of
from torch._logging._internal import set_logs

from conformance.adapter import Value

set_logs(all=logging.CRITICAL)  # torch writes a kernel that fails to the standard error
inductor_kernels.stand_in_for_the_device()

_kernels: dict[str, Any] = {}
_lock = threading.RLock()
"""As Dynamo's, under which graphs are compiled one after the other."""


def _of(name: str, factor: str) -> Any:
    if name not in _kernels:
        with _lock:
            if name not in _kernels:
                _kernels[name] = compile_kernel(name, factor)
    return _kernels[name]


def main() -> Value:
    return launch(_of("main_kernel", "3.0"))


def second() -> Value:
    return launch(_of("second_kernel", "4.0"))


def unstored() -> Value:
    """Compile although the store has it, which is as far as Triton goes."""
    import triton.knobs as knobs

    knobs.compilation.always_compile = True
    try:
        return launch(compile_kernel("unstored_kernel", "5.0"))
    finally:
        knobs.compilation.always_compile = False


def failing() -> Value:
    return launch(compile_kernel("failing_kernel", "(otk_secret_marker + no_such_name)"))


def unloadable() -> Value:
    return launch(compile_kernel("unloadable_kernel", "6.0"))


def control_flow() -> Value:
    """Compile as a tuner does, by the method of the kernel."""
    from torch._inductor.codecache import PyCodeCache

    candidate: Any = PyCodeCache.load(source_of("candidate_kernel", "7.0")).candidate_kernel
    candidate.precompile()
    return launch(candidate)


def another(n: int) -> Value:
    return launch(compile_kernel("another_kernel", f"{n}.5"))


class _Nowhere(str):
    """A path that can be weakly referenced."""


def quick(n: int) -> object:
    """Load a library that is not there."""
    from torch._inductor.codecache import CppCodeCache

    path = _Nowhere(f"/nowhere/{n}.so")
    try:
        CppCodeCache._load_library(path, "nowhere")
    except OSError:
        return path
    raise AssertionError("a library that is not there was loaded")


def on_launch() -> list[Any]:
    kernel = _of("main_kernel", "3.0")
    return [kernel, kernel.launchers[0]]
