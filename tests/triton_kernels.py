"""Kernels of Triton's tests."""

# Triton has no types that say enough: its kernels are Python only by their look.
# mypy: disable-error-code="untyped-decorator"
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false, reportArgumentType=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

# Kernels are called by a grid and with what stands for their arguments.
jit: Any = triton.jit
autotune: Any = triton.autotune


@jit
def scale(values: tl.tensor, size: tl.constexpr) -> None:
    index = tl.arange(0, size)
    tl.store(values + index, tl.load(values + index) * 3)


@jit
def shift(values: tl.tensor, amount: tl.tensor, size: tl.constexpr) -> None:
    index = tl.arange(0, size)
    tl.store(values + index, tl.load(values + index) + amount)


@jit
def undefined(values: tl.tensor) -> None:
    tl.store(
        values,
        nowhere,  # type: ignore[name-defined] # noqa: F821 # pyright: ignore[reportUndefinedVariable] - that is what fails
    )


@jit
def unassembled(values: tl.tensor) -> None:
    number = tl.inline_asm_elementwise("no.such.instruction $0;", "=r", [], tl.int32, True, 1)
    tl.store(values, number.to(tl.float32))


@jit
def greedy(left: tl.tensor, right: tl.tensor, values: tl.tensor, depth: tl.constexpr) -> None:
    """Want more shared memory than there is."""
    row = tl.arange(0, 64)[:, None]
    column = tl.arange(0, 128)[None, :]
    k = tl.arange(0, depth)
    product = tl.dot(tl.load(left + row * depth + k[None, :]), tl.load(right + k[:, None] * 128 + column))
    tl.store(values + row * 128 + column, product)


@jit
def modal(values: tl.tensor, mode: tl.constexpr) -> None:
    tl.store(values, 1.0)


@jit
def _twice(number: tl.tensor) -> tl.tensor:
    return number * 2


@jit
def apply(values: tl.tensor, function: tl.constexpr) -> None:
    tl.store(values, function(tl.load(values)))


twice = _twice


@autotune([triton.Config({"size": 32}), triton.Config({"size": 64}), triton.Config({"size": 128})], key=[])
@jit
def tuned(values: tl.tensor, size: tl.constexpr) -> None:
    tl.static_assert(size < 128)
    tl.store(values + tl.arange(0, size), 2.0)
