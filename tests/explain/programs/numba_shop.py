"""A kernel of Numba that a function and a global go into; variables of the environment say how it is called."""

# mypy: disable-error-code="untyped-decorator"
# pyright: reportUntypedFunctionDecorator=false, reportUnknownMemberType=false, reportMissingTypeStubs=false

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
from numba import njit

import otel_kernel

otel_kernel.instrument(recording=sys.argv[1])

RATE = 1.19
CACHED = "NO_CACHE" not in os.environ


@njit(cache=CACHED)
def with_tax(value: Any) -> Any:
    return value * RATE


@njit(cache=CACHED, fastmath="FAST" in os.environ)
def price(values: Any) -> Any:
    # the sum with tax
    total = 0.0
    for value in values.flat:
        total += with_tax(value)
    return total


shape = tuple(map(int, os.environ.get("SHAPE", "8").split("x")))
price(np.ones(shape, os.environ.get("DTYPE", "float64")))
