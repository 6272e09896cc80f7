"""Which process this is, and whether another one still lives."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_START_FIELD: Final = 19
"""Place of the start time among the fields of `/proc/<pid>/stat` that follow the name; the state is first."""

_ENDED: Final = ("Z", "X")
"""States of a process that runs no more and waits to be reaped."""


@dataclass(frozen=True, slots=True)
class ProcessId:
    """Names one process for good, where `/proc` is at hand: pids are used again."""

    pid: int
    space: str | None
    """The boot and the pid namespace in which `pid` means something."""
    start: int | None
    """Clock ticks from boot to the start of the process."""


def current() -> ProcessId:
    """Return this process."""
    pid = os.getpid()
    return ProcessId(pid, current_space(), _start(pid))


def current_space() -> str | None:
    """Return the boot and the pid namespace that this process sees, or None where `/proc` is missing."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def is_alive(process: ProcessId) -> bool | None:
    """Return whether the process lives, or None where that cannot be seen from here."""
    if process.start is None or process.space is None or process.space != current_space():
        return None
    return _start(process.pid) == process.start


def _start(pid: int) -> int | None:
    """Return when the process started, or None for one that is gone or waits to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name before the last parenthesis may hold spaces and parentheses of its own.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in _ENDED else int(fields[_START_FIELD])
