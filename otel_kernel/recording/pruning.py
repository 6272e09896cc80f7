"""Keeping a recording small."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from otel_kernel.recording.errors import explained
from otel_kernel.recording.file import connect_writer, real_path
from otel_kernel.recording.processes import ProcessId, is_alive

KEPT: Final = 20
"""Runs that stay, by default."""

UNSEEN_NS: Final = 24 * 3600 * 10**9
"""A process that cannot be seen from here, on another host or in another container, counts as alive for so
long after its last trip."""

_LAST_NS: Final = """
    SELECT max(started_ns + coalesce(duration_ns, 0)) FROM trips WHERE session = sessions.id
"""


def prune(path: Path, keep: int = KEPT) -> int:
    """Remove old runs with their trips and with the texts that no other run has.

    The room is used for what is recorded next; the file does not shrink.

    Args:
        path: the recording; it is made if there is none.
        keep: how many of the newest runs stay; one with a live process stays too.

    Returns:
        How many runs were removed.

    Raises:
        RecordingError: the recording cannot be read or written.
    """
    path = real_path(path)
    with explained(path), closing(connect_writer(path)) as connection:
        old = old_runs(connection, keep)
        for run in old:
            remove_run(connection, run)
        if old:
            remove_lonely_texts(connection)
        return len(old)


def old_runs(connection: sqlite3.Connection, keep: int) -> list[str]:
    """Return the runs to remove, the newest first: all but the newest `keep` and those with a live process."""
    runs = connection.execute(
        "SELECT run FROM sessions GROUP BY run ORDER BY max(started_ns) DESC, run LIMIT -1 OFFSET ?", (keep,)
    ).fetchall()
    return [run for (run,) in runs if not _lives(connection, run)]


def remove_run(connection: sqlite3.Connection, run: str) -> None:
    """Remove a run, process by process in a transaction each, so that writers need not wait for all of it."""
    connection.execute("PRAGMA foreign_keys = ON")  # what belongs to a session goes with it
    for (session,) in connection.execute("SELECT id FROM sessions WHERE run = ?", (run,)).fetchall():
        connection.execute("DELETE FROM sessions WHERE id = ?", (session,))


def remove_lonely_texts(connection: sqlite3.Connection) -> None:
    """Remove the texts that no trip has."""
    connection.execute(
        "DELETE FROM texts WHERE sha256 NOT IN ("
        "SELECT ir_sha256 FROM trips WHERE ir_kept = 'whole' "
        "UNION ALL SELECT source_sha256 FROM trips WHERE source_kept = 'whole')"
    )


def _lives(connection: sqlite3.Connection, run: str) -> bool:
    """Whether a process of the run lives, as far as can be known."""
    now = time.time_ns()
    sessions = connection.execute(
        f"SELECT pid, pid_space, process_start, coalesce(({_LAST_NS}), started_ns) FROM sessions WHERE run = ?",
        (run,),
    )
    for pid, space, start, last_ns in sessions:
        alive = is_alive(ProcessId(pid, space, start))
        if alive or (alive is None and now - last_ns < UNSEEN_NS):
            return True
    return False
