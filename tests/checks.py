"""Small things that tests of the core look at."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from otel_kernel.records import Trip


def failing(error: BaseException) -> Callable[[], None]:
    """Return a body that raises `error` from a function called `library_code`."""

    def library_code() -> None:
        raise error

    return library_code


def ends(trips: Iterable[Trip]) -> list[tuple[str, str | None]]:
    """Return the kernel of each trip, and its outcome, why it was abandoned, or its error."""
    told: list[tuple[str, str | None]] = []
    for trip in trips:
        settled = trip.outcome or trip.abandoned
        told.append((trip.kernel, settled.value if settled else trip.error_type))
    return told


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what users see in a log."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def is_free(lock: Any) -> bool:
    """Whether another thread can take the lock."""

    def take() -> bool:
        taken: bool = lock.acquire(blocking=False)
        if taken:
            lock.release()
        return taken

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(take).result()
