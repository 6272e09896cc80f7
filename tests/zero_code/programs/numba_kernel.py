"""Compiles a kernel. Says first which runtimes were imported before its first line."""

from __future__ import annotations

import sys

print("imported:", *sorted({"jax", "numba", "torch", "triton"} & sys.modules.keys()), flush=True)

from typing import Any  # noqa: E402 - after the look

import numba  # noqa: E402 - after the look


def kernel(x: Any) -> Any:
    """Return one more than x."""
    return x + 1


compiled: Any = numba.njit(kernel)
print(compiled(1))
