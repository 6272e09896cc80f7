"""The sink that writes a recording, one transaction for the start of a trip and one for its end.

Nothing waits for a later moment and there is no thread: what was written outlives a kill, `os._exit`, exec
and a worker that is forked and forgotten.
"""

from __future__ import annotations

import functools
import os
import sqlite3
import sys
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from otel_kernel import semconv
from otel_kernel.recording import processes, schema
from otel_kernel.recording.errors import (
    BUSY_SECONDS,
    RecordingError,
    RefusedTripError,
    explained,
    is_locked,
)
from otel_kernel.recording.file import connect_writer, real_path
from otel_kernel.recording.rows import TripRows, to_rows
from otel_kernel.records import Session, Trip, escape

_IMPATIENT_SECONDS = 0.1
"""How long one waits for a lock after it could not be had once, so that no compile waits again and again."""


def _insert(verb: str, table: str, columns: int) -> str:
    return f"{verb} INTO {table} VALUES ({', '.join('?' * columns)})"


_ADD_SESSION: Final = _insert("INSERT OR IGNORE", "sessions", len(schema.SESSION_COLUMNS))
# A start never takes the place of an end.
_START_TRIP: Final = _insert("INSERT OR IGNORE", "trips", len(schema.TRIP_COLUMNS))
_END_TRIP: Final = _insert("INSERT OR REPLACE", "trips", len(schema.TRIP_COLUMNS))
_ADD_COMPONENT: Final = _insert("INSERT OR IGNORE", "key_components", 4)
_ADD_STAGE: Final = _insert("INSERT OR IGNORE", "stages", 4)
_ADD_TEXT: Final = _insert("INSERT OR IGNORE", "texts", 2)


@dataclass(frozen=True, slots=True)
class _Entry:
    """What one call has to write."""

    session: Session
    started_ns: int
    is_own: bool
    """Whether this very process had the trip, or hands on that of another one."""
    rows: TripRows
    ended: bool


class RecordingSink:
    """Writes every trip to a recording; the file is opened, and made if need be, with the first trip.

    Both methods of the sink return when the row is in the file. They may be called from any thread and around
    a fork; what a signal handler hands over in the middle of a call is written before that call returns.
    """

    wants_start = True

    def __init__(self, path: Path, *, foreign: bool = False) -> None:
        """Remember the file.

        Args:
            path: the recording.
            foreign: whether all trips are of other processes, whatever their attributes say.
        """
        self._foreign = foreign
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._waiting: deque[_Entry] = deque()
        self._writing = False
        self._patience = BUSY_SECONDS
        self._session: Session | None = None
        self._refusal: str | None = None
        self.path = real_path(path)
        _sinks.add(self)

    def __del__(self) -> None:
        try:
            if self._connection is not None:
                self._connection.close()
        except Exception:
            pass  # not by `suppress`, which may be gone when the interpreter ends

    def started(self, trip: Trip) -> None:
        """Write an unfinished trip.

        Raises:
            RecordingError: it could not be written.
        """
        self._write(trip, ended=False)

    def finished(self, trip: Trip) -> None:
        """Write a trip as it ended, in place of what its start wrote.

        Raises:
            RecordingError: it could not be written.
        """
        self._write(trip, ended=True)

    def close(self) -> None:
        """Close the file; the next trip opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()

    def hold(self) -> None:
        """Close the file and let no thread open it until `release`."""
        self._lock.acquire()
        self.close()

    def release(self, *, in_child: bool) -> None:
        """Let threads write again."""
        if in_child:
            # A write that the fork came in the middle of is the parent's to end.
            self._writing = False
            self._waiting.clear()
        self._lock.release()

    def _write(self, trip: Trip, *, ended: bool) -> None:
        pid = os.getpid()
        is_own = not self._foreign and trip.attributes.get(semconv.PROCESS_PID, pid) == pid
        entry = _Entry(trip.session, trip.started_ns, is_own, to_rows(trip), ended)
        with self._lock:
            if self._refusal is not None:
                raise RecordingError(self._refusal, lasting=True)
            self._waiting.append(entry)
            if self._writing:
                return  # a signal handler or a finalizer in the middle of the loop below, which goes on
            self._writing = True
            try:
                while self._waiting:
                    self._commit(self._waiting.popleft())
            finally:
                self._writing = False

    def _commit(self, entry: _Entry) -> None:
        try:
            with explained(self.path):
                self._transact(entry)
        except RecordingError as error:
            if error.lasting:
                self._refusal = str(error)
                self.close()
            elif is_locked(error.__cause__):
                self._wait_for_locks(_IMPATIENT_SECONDS)
            raise
        self._session = entry.session
        self._wait_for_locks(BUSY_SECONDS)

    def _transact(self, entry: _Entry) -> None:
        while True:
            connection = self._connected()
            try:
                connection.execute("BEGIN IMMEDIATE")
                if entry.session != self._session:
                    _add_session(connection, entry)
                _add_trip(connection, entry)
                connection.execute("COMMIT")
                return
            except sqlite3.ProgrammingError:
                # A fork from a signal handler in the middle of this has closed the connection: begin again.
                if connection is self._connection:
                    raise
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def _connected(self) -> sqlite3.Connection:
        """Return the open connection to the file that is at the path now."""
        connection = self._connection
        if connection is None:
            connection = connect_writer(self.path, self._patience)
            self._connection, self._file = connection, _identity(self.path)
        elif _identity(self.path) != self._file:
            raise RecordingError(
                f"the recording {self.path} was removed or replaced while this process wrote it: what follows "
                f"is not recorded; start the program again",
                lasting=True,
            )
        return connection

    def _wait_for_locks(self, seconds: float) -> None:
        if seconds != self._patience:
            self._patience = seconds
            if self._connection is not None:
                self._connection.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells one file from another that was put in its place."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _add_session(connection: sqlite3.Connection, entry: _Entry) -> None:
    session = entry.session
    known: Sequence[object] = (None,) * 7
    if entry.is_own:
        process = processes.current()
        program = Path(sys.argv[0]).name if sys.argv else ""
        known = (
            escape(os.uname().nodename),
            process.pid,
            os.getppid(),
            escape(program),
            sys.version.split()[0],
            process.space,
            process.start,
        )
    added = connection.execute(_ADD_SESSION, (session.id, session.run, entry.started_ns, *known)).rowcount
    if not added:
        run: str = connection.execute("SELECT run FROM sessions WHERE id = ?", (session.id,)).fetchone()[0]
        if run != session.run:
            raise RefusedTripError(
                f"session {session.id} belongs to run {run}, not to run {session.run}: a session has one run"
            )


def _add_trip(connection: sqlite3.Connection, entry: _Entry) -> None:
    rows = entry.rows
    if entry.ended:
        connection.execute(_END_TRIP, rows.trip)
        for table in ("key_components", "stages"):
            connection.execute(f"DELETE FROM {table} WHERE session = ? AND seq = ?", rows.trip[:2])
    else:
        connection.execute(_START_TRIP, rows.trip)
    # Not by `executemany`: until its cursor is gone, a connection that is closed before a fork stays open.
    for insert, values in (
        (_ADD_COMPONENT, rows.components),
        (_ADD_STAGE, rows.stages),
        (_ADD_TEXT, rows.texts),
    ):
        for row in values:
            connection.execute(insert, row)


_sinks: weakref.WeakSet[RecordingSink] = weakref.WeakSet()
_held: list[RecordingSink] = []


def _before_fork() -> None:
    """Keep every sink from writing, and every connection from being inherited: SQLite forbids that."""
    for sink in sorted(_sinks, key=id):
        sink.hold()
        _held.append(sink)


def _after_fork(*, in_child: bool) -> None:
    while _held:
        _held.pop().release(in_child=in_child)


os.register_at_fork(
    before=_before_fork,
    after_in_parent=functools.partial(_after_fork, in_child=False),
    after_in_child=functools.partial(_after_fork, in_child=True),
)
