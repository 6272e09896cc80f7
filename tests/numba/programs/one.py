"""One stored kernel."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from conformance.harness import value, watch
from numba import njit

watch()


@njit(cache=True)
def kernel(x: float) -> float:
    return x + 1


value("result", kernel(1.5))
