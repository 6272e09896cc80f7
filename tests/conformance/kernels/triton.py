"""Kernels of Triton, for a device that is not there unless the environment names one."""

# Triton has no types that say enough: its kernels are Python only by their look.
# mypy: disable-error-code="untyped-decorator"
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false, reportArgumentType=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportCallIssue=false

from __future__ import annotations

import copy
from typing import Any

import triton
import triton.knobs as knobs
import triton.language as tl
from triton.compiler import ASTSource
from triton_device import floats, total

from conformance.adapter import Value


@triton.jit
def main_kernel(values: tl.tensor, size: tl.constexpr) -> None:
    index = tl.arange(0, size)
    tripled = tl.load(values + index) * 3
    # A comment for the assembler is in the IR of every version, the name of a variable in that of newer ones.
    otk_secret_marker = tl.inline_asm_elementwise(
        "mov.b32 $0, $1; // otk_secret_marker", "=r,r", [tripled], tl.float32, True, 1
    )
    tl.store(values + index, otk_secret_marker + 1)


@triton.jit
def second_kernel(values: tl.tensor, amount: tl.tensor, size: tl.constexpr) -> None:
    index = tl.arange(0, size)
    tl.store(values + index, tl.load(values + index) - amount)


@triton.jit
def failing_kernel(values: tl.tensor) -> None:
    tl.store(values, otk_secret_marker)  # type: ignore[name-defined] # noqa: F821 # pyright: ignore[reportUndefinedVariable] - that is what fails


@triton.jit
def unloadable_kernel(
    left: tl.tensor, right: tl.tensor, values: tl.tensor, depth: tl.constexpr, width: tl.constexpr
) -> None:
    row = tl.arange(0, 64)[:, None]
    column = tl.arange(0, width)[None, :]
    k = tl.arange(0, depth)
    product = tl.dot(tl.load(left + row * depth + k[None, :]), tl.load(right + k[:, None] * width + column))
    tl.store(values + row * width + column, product)


@triton.autotune([triton.Config({"size": 64}), triton.Config({"size": 128})], key=[])
@triton.jit
def tuned_kernel(values: tl.tensor, size: tl.constexpr) -> None:
    tl.static_assert(size < 128)
    tl.store(values + tl.arange(0, size), 2.0)


@triton.jit
def another_kernel(values: tl.tensor, number: tl.constexpr) -> None:
    tl.store(values, number)


def main() -> Value:
    values = floats(128)
    main_kernel[(1,)](values, size=128)
    return total(values)


def second() -> Value:
    values = floats(256)
    second_kernel[(1,)](values, 0.5, size=256)
    return total(values)


def unstored() -> Value:
    """Compile although the store has it, which is as far as Triton goes."""
    values = floats(256)
    knobs.compilation.always_compile = True
    try:
        second_kernel[(1,)](values, 1, size=256)
    finally:
        knobs.compilation.always_compile = False
    return total(values)


def failing() -> Value:
    values = floats(1)
    failing_kernel[(1,)](values)
    return total(values)


def unloadable() -> Value:
    """Ask for more shared memory than the device has."""
    values = floats(64 * 512)
    unloadable_kernel[(1,)](values, floats(512 * 128), values, depth=512, width=128, num_warps=8)
    return total(values)


def control_flow() -> Value:
    """Tune a kernel that one of its configurations does not fit."""
    values = floats(128)
    tuned_kernel[(1,)](values)
    return total(values)


def another(n: int) -> Value:
    values = floats(1)
    another_kernel[(1,)](values, number=n)
    return total(values)


def quick(_n: int) -> object:
    """Ask for a target that is none, which the compiler refuses at once."""
    source = ASTSource(main_kernel, {"values": "*fp32", "size": "constexpr"}, {"size": 16})
    try:
        triton.compile(source, target="none")
    except AssertionError:
        return source
    raise AssertionError("the compiler has taken a target that is none")


def on_launch() -> list[Any]:
    # The copy of `compile` that a JITFunction keeps is for those launches that find nothing in memory.
    function = copy.copy(main_kernel)
    vars(function).pop("compile")
    return [function, main_kernel[(1,)](floats(128), size=128)]
