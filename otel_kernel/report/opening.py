"""Opens any INPUT for SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from otel_kernel.inputs import Input, Problem, open_input
from otel_kernel.recording import schema
from otel_kernel.recording.errors import explained
from otel_kernel.recording.reader import connect_readonly
from otel_kernel.recording.rows import TripRows, to_rows
from otel_kernel.records import Trip
from otel_kernel.texts import TextFiles

_BATCH: Final = 1000
"""Trips in one transaction."""

_CACHE_KIB: Final = 64 * 1024
"""Memory that SQLite may use for pages."""

_Read: TypeAlias = "Callable[[Input], Iterable[Trip | Problem]]"


@dataclass(frozen=True, slots=True)
class Opened:
    """An INPUT as a recording to query."""

    connection: sqlite3.Connection
    """Sees one state of the recording; temporary tables may be made."""
    name: str
    """How messages call the INPUT."""
    input: Input
    """Counts what was imported; a recording by itself is not."""

    @property
    def is_recording(self) -> bool:
        """Whether the INPUT is a recording by itself, which tells of every run of its host."""
        return self.input.recording is not None


@contextmanager
def opened(
    spec: str | Path,
    on_problem: Callable[[Problem], None],
    *,
    texts: TextFiles | None = None,
    read: _Read = iter,
) -> Generator[Opened]:
    """Open an INPUT for SQL.

    Args:
        spec: as `open_input` takes it.
        on_problem: called with each part of the INPUT that is lost.
        texts: where to look for texts that a line does not carry whole.
        read: iterates over an INPUT that is imported, and may show how far it is.

    Raises:
        InputError: the INPUT cannot be read at all.
        RecordingError: the same for a recording, also when it turns out while it is queried.
    """
    found = open_input(spec, texts=texts)
    path = found.recording
    if path is not None:
        with opened_recording(path) as connection:
            yield Opened(connection, str(spec), found)
        return
    with closing(_imported(found, read, on_problem)) as connection:
        yield Opened(connection, str(spec), found)


@contextmanager
def opened_recording(path: Path) -> Generator[sqlite3.Connection]:
    """Open a recording for SQL, as `Opened.connection`.

    Raises:
        RecordingError: it cannot be read, also when that turns out while it is queried.
    """
    with closing(connect_readonly(path)) as connection, explained(path):
        connection.isolation_level = None
        _use_memory(connection)
        connection.execute("BEGIN")
        yield connection


def _use_memory(connection: sqlite3.Connection) -> None:
    for database in ("main", "temp"):
        connection.execute(f"PRAGMA {database}.cache_size = -{_CACHE_KIB}")


def _imported(found: Input, read: _Read, on_problem: Callable[[Problem], None]) -> sqlite3.Connection:
    """Return a temporary recording, which SQLite keeps in memory while it is small and then in a file."""
    connection = sqlite3.connect("", isolation_level=None)
    try:
        _use_memory(connection)
        connection.execute("PRAGMA journal_mode = OFF")
        connection.executescript(schema.DDL)
        trips = _trips(found, read, on_problem)
        while batch := list(islice(trips, _BATCH)):
            connection.execute("BEGIN")
            _insert(connection, batch)
            connection.execute("COMMIT")
        connection.execute(
            "UPDATE sessions SET started_ns = (SELECT min(started_ns) FROM trips WHERE session = sessions.id)"
        )
    except BaseException:
        connection.close()
        raise
    return connection


def _trips(found: Input, read: _Read, on_problem: Callable[[Problem], None]) -> Iterator[Trip]:
    runs: dict[str, str] = {}
    for each in read(found):
        if isinstance(each, Problem):
            on_problem(each)
            continue
        run = runs.setdefault(each.session.id, each.session.run)
        if run != each.session.run:
            found.trips -= 1
            found.problems += 1
            on_problem(
                Problem(
                    "",
                    f"trip {each.seq} of session {each.session.id} says run {each.session.run}, others {run}",
                )
            )
            continue
        yield each


def _insert(connection: sqlite3.Connection, batch: list[Trip]) -> None:
    sessions = [
        (each.session.id, each.session.run, each.started_ns, *(None,) * (len(schema.SESSION_COLUMNS) - 3))
        for each in batch
    ]
    rows: list[TripRows] = [to_rows(each) for each in batch]
    for table, values in (
        ("sessions", sessions),
        ("trips", [each.trip for each in rows]),
        ("key_components", [row for each in rows for row in each.components]),
        ("stages", [row for each in rows for row in each.stages]),
        ("texts", [row for each in rows for row in each.texts]),
    ):
        if values:
            places = ", ".join("?" * len(values[0]))
            connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", values)
