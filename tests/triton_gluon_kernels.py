"""A Gluon kernel of Triton's tests."""

# Triton has no types that say enough: its kernels are Python only by their look.
# mypy: disable-error-code="untyped-decorator"
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportOperatorIssue=false, reportAssignmentType=false

from __future__ import annotations

from typing import Any

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

jit: Any = gluon.jit


@jit
def fill(values: gl.tensor, number: gl.constexpr) -> None:
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    index = gl.arange(0, 128, layout=layout)
    gl.store(values + index, gl.full([128], number, gl.float32, layout=layout))
