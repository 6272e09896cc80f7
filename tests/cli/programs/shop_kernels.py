"""Two kernels that Numba stores and one that it does not."""

from __future__ import annotations

from typing import Any

from numba import njit


def with_tax(price: float) -> float:
    return price * 1.19


def rounded(price: float) -> float:
    return round(price, 2)


def discounted(price: float) -> float:
    return price * 0.9


stored: list[Any] = [njit(cache=True)(with_tax), njit(cache=True)(rounded)]
not_stored: Any = njit(discounted)
print(*(kernel(100.0) for kernel in (*stored, not_stored)))
