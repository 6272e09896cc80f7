"""A kernel whose store becomes read-only before it is compiled."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from pathlib import Path
from typing import Any

from conformance.harness import raised_by, value, watch
from conformance.scripts.stores import lose_privileges
from numba import njit

watch()


@njit(cache=True)
def kernel(x: float) -> float:
    return x + 1


dispatcher: Any = kernel
Path(dispatcher._cache.cache_path).chmod(0o555)
lose_privileges()
value("raised", type(raised_by(lambda: kernel(1.5))).__name__)
value("result", kernel(1.5))
