"""A kernel of torch that a function and a global go into; variables of the environment say how it is called."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedFunctionDecorator=false
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import os
import sys
from typing import Any

import torch

import otel_kernel

otel_kernel.instrument(recording=sys.argv[1], level="full")

RATE = 1.19


def with_tax(values: Any) -> Any:
    return values * RATE


@torch.compile(dynamic=False, options={"max_fusion_size": 32} if "OPTION" in os.environ else None)
def price(values: Any) -> Any:
    # the sum with tax
    return with_tax(values).sin() + 1


shape = tuple(map(int, os.environ.get("SHAPE", "64").split("x")))
price(torch.ones(shape, dtype=getattr(torch, os.environ.get("DTYPE", "float32"))))
