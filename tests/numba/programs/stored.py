"""One stored kernel of every kind, and some that Numba does not store."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import ctypes
import math
import warnings
from importlib import import_module
from typing import Any

import numpy as np
from conformance.harness import value, watch

numba: Any = import_module("numba")
watch(level="full")
warnings.simplefilter("ignore")  # Numba warns of what it does not store

FACTOR = 3


@numba.njit(cache=True, fastmath=True)
def function(x: float) -> float:
    return x * FACTOR


def closure_over(n: int) -> Any:
    @numba.njit(cache=True)
    def closure(x: int) -> int:
        return x + n

    return closure


@numba.vectorize(["float64(float64)"], cache=True)
def elementwise(x: float) -> float:
    return math.sin(x) + 1


@numba.guvectorize(["(float64[:], float64[:])"], "(n)->(n)", cache=True)
def general(values: Any, out: Any) -> None:
    for i in range(len(values)):
        out[i] = values[i]


@numba.cfunc("float64(float64)", cache=True)
def callback(x: float) -> float:
    return x * 2


@numba.njit(cache=True, parallel=True)
def parallel(n: int) -> float:
    total = 0.0
    for i in numba.prange(n):
        total += i
    return total


@numba.njit(cache=True)
def callee(x: int) -> int:
    return x - 1


@numba.njit(cache=True)
def caller(x: int) -> int:
    return int(callee(x))


@numba.jit(forceobj=True, looplift=True, cache=True)
def with_lifted_loop(n: int) -> int:
    total = 0
    for i in range(n):
        total += i
    return total


absolute = ctypes.CDLL(None).abs
absolute.argtypes = [ctypes.c_int]
absolute.restype = ctypes.c_int


@numba.njit(cache=True)
def with_dynamic_global(x: int) -> int:
    return int(absolute(x))


@numba.njit(cache=True)
def switched_off(x: int) -> int:
    return x


switched_off._cache.disable()


class Model:
    @staticmethod
    @numba.njit(cache=True)
    def step(x: int) -> int:
        return x + 1


def main() -> None:
    ones = np.ones(3)
    value(
        "results",
        [
            function(1.5),
            closure_over(1)(1),
            closure_over(2)(1),
            list(elementwise(ones)),
            list(general(ones)),
            callback.ctypes(1.5),
            parallel(10),
            caller(3),
            with_lifted_loop(10),
            with_dynamic_global(-2),
            switched_off(1),
            Model.step(1),
        ],
    )


main()
