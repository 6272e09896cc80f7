"""Reading a recording: all of it as trips, or by SQL."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from otel_kernel.recording import schema
from otel_kernel.recording.errors import (
    BUSY_SECONDS,
    RecordingError,
    cannot_make_side_files,
    damaged,
    explain,
    explained,
)
from otel_kernel.recording.file import IMMUTABLE, READ, check_header, check_version, log_size, real_path, uri
from otel_kernel.recording.rows import from_rows
from otel_kernel.records import Session, Trip

_TRIPS: Final = f"""
    SELECT {", ".join(f"trips.{column}" for column in schema.TRIP_COLUMNS)}, ir.text, source.text
    FROM trips
    LEFT JOIN texts AS ir ON trips.ir_kept = 'whole' AND ir.sha256 = trips.ir_sha256
    LEFT JOIN texts AS source ON trips.source_kept = 'whole' AND source.sha256 = trips.source_sha256
    WHERE trips.session = ?
    ORDER BY trips.seq
"""


def connect_readonly(path: Path) -> sqlite3.Connection:
    """Open a recording for reading; writers go on meanwhile. The caller closes it.

    In a folder that cannot be written the file is read as it lies there, without locks: SQLite needs to make
    files beside it otherwise.

    Raises:
        RecordingError: there is no recording that this version reads.
    """
    path = real_path(path)
    try:
        check_header(path)
    except FileNotFoundError:
        raise RecordingError(f"there is no recording {path}: name one that `otel-kernel run` wrote") from None
    try:
        return _connect(path, uri(path, READ))
    except sqlite3.OperationalError as error:
        if not cannot_make_side_files(error) or os.access(path.parent, os.W_OK):
            raise explain(path, error) from error
    except sqlite3.Error as error:
        raise explain(path, error) from error
    if log_size(path):
        raise RecordingError(
            f"the recording {path} has its last rows in {path.name}-wal and its folder cannot be written: copy both "
            f"files to a folder that can, and read it there"
        )
    with explained(path):
        return _connect(path, uri(path, IMMUTABLE))


def _connect(path: Path, name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(name, uri=True, timeout=BUSY_SECONDS)
    try:
        check_version(path, connection.execute("PRAGMA user_version").fetchone()[0])
        connection.execute("SELECT 1 FROM sessions LIMIT 1")  # opens the log, which only a read does
    except BaseException:
        connection.close()
        raise
    return connection


def read_trips(path: Path, run: str | None = None) -> Iterator[Trip]:
    """Yield all trips, also failed, abandoned and unfinished ones, from one state of the recording.

    They come session by session, in the order in which sessions started, and within one by `seq`.

    Args:
        path: the recording.
        run: yield the trips of this run only.

    Raises:
        RecordingError: at the first trip, if the recording cannot be read; at a later one, if it is damaged.
    """
    path = real_path(path)
    with closing(connect_readonly(path)) as connection, explained(path):
        connection.execute("BEGIN")
        sessions = connection.execute(
            "SELECT id, run FROM sessions WHERE ?1 IS NULL OR run = ?1 ORDER BY started_ns, id", (run,)
        )
        for session_id, session_run in sessions:
            try:
                session = Session(id=session_id, run=session_run)
            except ValueError as error:
                raise damaged(path, str(error)) from error
            yield from _session_trips(path, connection, session)


def _session_trips(path: Path, connection: sqlite3.Connection, session: Session) -> Iterator[Trip]:
    components = _family(connection, "SELECT seq, name, value FROM key_components", session)
    stages = _family(connection, "SELECT seq, name, duration_ns FROM stages", session)
    for *row, ir, source in connection.execute(_TRIPS, (session.id,)):
        seq: int = row[1]
        try:
            trip = from_rows(session, row, components(seq), stages(seq), ir, source)
        except (ValueError, TypeError) as error:
            raise damaged(path, f"trip {seq} of session {session.id}: {error}") from error
        yield trip


def _family(
    connection: sqlite3.Connection, select: str, session: Session
) -> Callable[[int], list[tuple[str, Any]]]:
    """Return a function that gives the rows of one trip, asked for by rising `seq`."""
    rows = connection.execute(f"{select} WHERE session = ? ORDER BY seq", (session.id,))
    row = next(rows, None)

    def take(seq: int) -> list[tuple[str, Any]]:
        nonlocal row
        taken: list[tuple[str, Any]] = []
        while row is not None and row[0] <= seq:
            if row[0] == seq:
                taken.append((row[1], row[2]))
            row = next(rows, None)
        return taken

    return take
