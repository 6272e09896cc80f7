"""One stored kernel of a module that is not watched by itself."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from numba import njit


@njit(cache=True)
def kernel(x: float) -> float:
    return x + 1


kernel(1.5)
