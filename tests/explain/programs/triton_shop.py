"""A kernel of Triton that a function and a global go into; variables of the environment say how it is called."""

# Triton has no types that say enough: its kernels are Python only by their look.
# mypy: disable-error-code="untyped-decorator"
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false, reportArgumentType=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportUnknownParameterType=false

from __future__ import annotations

import os
import sys
from typing import Any

import triton
import triton.language as tl
import triton_device
from triton.backends.compiler import GPUTarget

import otel_kernel

otel_kernel.instrument(recording=sys.argv[1], level="full")
triton_device.device.target = GPUTarget("cuda", int(os.environ.get("ARCH", "90")), 32)

jit: Any = triton.jit
RATE: Any = tl.constexpr(3)


@jit
def with_tax(value: tl.tensor) -> tl.tensor:
    return value * RATE


@jit
def price(values: tl.tensor, count: tl.tensor, size: tl.constexpr) -> None:
    # every value with tax
    index = tl.arange(0, size)
    tl.store(values + index, with_tax(tl.load(values + index, mask=index < count)))


class Values:
    """Stands for a tensor."""

    dtype = getattr(tl, os.environ.get("DTYPE", "float32"))

    def data_ptr(self) -> int:
        return 1 << 20


price[(1,)](
    Values(),
    int(os.environ.get("COUNT", "48")),
    size=int(os.environ.get("SIZE", "64")),
    num_warps=int(os.environ.get("WARPS", "4")),
)
