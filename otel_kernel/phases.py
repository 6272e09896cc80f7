"""Which phase of its life the program is in: what compiles while serving is what operators ask about."""

from __future__ import annotations

import os
import time

from otel_kernel.records import escape

STARTUP = "startup"
SERVING = "serving"

_named: str | None = None


def enter(name: str) -> None:
    """Name the phase from here on; wins over `serving_after`.

    Raises:
        ValueError: the name is empty or not a str.
    """
    global _named
    if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance] - callers are users
        raise ValueError(f"a phase is a non-empty str, got {name!r}")
    _named = escape(name)


def current(serving_after: float | None) -> str | None:
    """Return the phase, or None where neither the program nor `serving_after` (seconds) tells."""
    if _named is not None:
        return _named
    if serving_after is None:
        return None
    return SERVING if age() >= serving_after else STARTUP


def age() -> float:
    """Return seconds since this process started, an exec or a late import of ours not counting as a start."""
    global _started
    if _started is None:
        _started = start_of_process()
    return _now() - _started


def start_of_process(stat: str = "/proc/self/stat") -> float:
    """Return when this process started, in seconds on the clock of `_now`.

    Args:
        stat: where Linux tells; without it, as on another system, the process is as old as this module.
    """
    try:
        with open(stat, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib is slow to import
            ticks = int(file.read().rpartition(")")[2].split()[19])
        started = ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return _imported
    return (
        started if 0 < started <= _now() else _imported
    )  # a sandbox may tell nothing or the time of its host


def _now() -> float:
    # Linux counts starts from boot, suspended time included. Not from /proc/uptime, which containers may fake.
    return time.clock_gettime(time.CLOCK_BOOTTIME) if _COUNTS_FROM_BOOT else time.monotonic()


def _fork() -> None:
    global _started
    _started = None


_COUNTS_FROM_BOOT = hasattr(time, "CLOCK_BOOTTIME")
_imported = _now() - time.process_time()
_started: float | None = None  # read by the first trip that asks: it costs as much as a trip
os.register_at_fork(after_in_child=_fork)
