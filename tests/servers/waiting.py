"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

PATIENCE: Final = 60
"""Seconds after which what is waited for will not come."""

_T = TypeVar("_T")


def eventually(look: Callable[[], _T], pause: float = 0.05) -> _T:
    """Return the first true value that `look` returns, or its last one."""
    deadline = time.monotonic() + PATIENCE
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(pause)
    return found
