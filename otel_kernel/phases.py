"""Which phase of its life the program is in: what compiles while serving is what operators ask about."""

from __future__ import annotations

import time

STARTUP = "startup"
SERVING = "serving"

_named: str | None = None
_process_started = time.monotonic() - time.process_time()


def enter(name: str) -> None:
    """Name the phase from here on; wins over `serving_after`.

    Raises:
        ValueError: the name is empty or not a str.
    """
    global _named
    if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance] - callers are users
        raise ValueError(f"a phase is a non-empty str, got {name!r}")
    _named = name


def current(serving_after: float | None) -> str | None:
    """Return the phase, or None where neither the program nor `serving_after` (seconds) tells."""
    if _named is not None:
        return _named
    if serving_after is None:
        return None
    return SERVING if _age() >= serving_after else STARTUP


def _age() -> float:
    """Return seconds since this process started, from the kernel where it tells."""
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib is slow to import
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime", encoding="utf-8") as file:  # noqa: PTH123
            uptime = float(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return time.monotonic() - _process_started
    import os

    return uptime - ticks / os.sysconf("SC_CLK_TCK")
