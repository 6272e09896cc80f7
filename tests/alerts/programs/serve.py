"""Serves, as far as its environment says so: compiles one kernel and fails to compile another."""

from __future__ import annotations

from typing import Any

import numba
from numba.core.errors import TypingError


def discount(price: Any) -> Any:
    return price * 0.9


def broken(price: Any) -> Any:
    return price.no_such_thing


good: Any = numba.njit(discount)
bad: Any = numba.njit(broken)
print(good(10.0))
try:
    bad(10.0)
except TypingError:
    print("broken")
