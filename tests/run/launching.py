"""Starting `otel-kernel run` as a user does, and reading what it has recorded."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

PYTHON = sys.executable
BIN = Path(PYTHON).parent
OTEL_KERNEL = str(BIN / "otel-kernel")
PROGRAMS = Path(__file__).parent / "programs"
OURS = "otel-kernel: "
"""How every line of ours on stderr starts, unless it is part of the summary."""


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a user who has set nothing for Python or OpenTelemetry, but `changes`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "PYTHON", "NUMBA_"))
    }
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **(changes or {})}


def run(
    command: Sequence[str],
    folder: Path,
    *,
    options: Sequence[str] = (),
    changes: Mapping[str, str] | None = None,
    stdin: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run `command` under `otel-kernel run` in `folder`, recording to `recording.db` there."""
    return subprocess.run(
        [OTEL_KERNEL, "run", "--recording", "recording.db", *options, "--", *command],
        cwd=folder,
        env=environment(changes),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def recorded(folder: Path) -> list[tuple[str, ...]]:
    """Return the short names of the kernels in the recording of `folder`, process by process."""
    processes: dict[str, list[str]] = {}
    with closing(sqlite3.connect(folder / "recording.db")) as connection:
        for session, kernel in connection.execute("SELECT session, kernel FROM records ORDER BY started_ns"):
            processes.setdefault(session, []).append(kernel.rpartition(".")[2])
    return sorted(tuple(kernels) for kernels in processes.values())


def our_lines(stderr: str) -> list[str]:
    """Return the lines of ours that are not part of the summary."""
    return [line for line in stderr.splitlines() if line.startswith(OURS)]
