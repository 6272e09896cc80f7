"""The kernels of the server: one of each runtime, named by whoever asks for it."""

# Runtimes are half typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def numba(name: str) -> None:
    from numba import njit

    def kernel(x: int) -> int:
        return x + 1

    kernel.__name__ = kernel.__qualname__ = name
    njit("int64(int64)")(kernel)


def triton(_name: str) -> None:
    import triton_kernels
    from triton_device import floats

    triton_kernels.scale[(1,)](floats(64), size=64)


def torch(name: str) -> None:
    import torch

    def kernel(x: Any) -> Any:
        return x.sin() + 1

    kernel.__name__ = kernel.__qualname__ = name
    names: dict[str, Any] = {"co_name": name}
    if sys.version_info >= (3, 11):
        names["co_qualname"] = name
    kernel.__code__ = kernel.__code__.replace(**names)
    torch.compile(kernel)(torch.ones(8))


def jax(name: str) -> None:
    import jax
    import numpy as np

    def kernel(x: Any) -> Any:
        return x * 3 + 1

    kernel.__name__ = kernel.__qualname__ = name
    jax.jit(kernel)(np.ones(8, np.float32)).block_until_ready()


COMPILE: dict[str, Callable[[str], None]] = {"numba": numba, "triton": triton, "torch": torch, "jax": jax}
