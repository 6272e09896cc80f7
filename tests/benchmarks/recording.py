"""Recording trips, beside plain sqlite3 that writes the same rows in the same two transactions a trip."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

from benchmarks.harness import Line, Rounds, at_most, processor_seconds
from benchmarks.trips import a_trip, session_of
from otel_kernel.recording import schema
from otel_kernel.recording.rows import TripRows, to_rows
from otel_kernel.recording.writer import RecordingSink
from otel_kernel.records import Trip

_TRIPS = 200
"""In a round."""
_ROUNDS = 40


def _places(columns: int) -> str:
    return ", ".join("?" * columns)


class _Plain:
    """What anyone would write: a connection with the same settings and tables, and ready rows."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.executescript(
            f"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; {schema.DDL}"
        )
        session = (session_of(0).id, session_of(0).run, 0, *(None,) * (len(schema.SESSION_COLUMNS) - 3))
        self._connection.execute(f"INSERT INTO sessions VALUES ({_places(len(session))})", session)
        self._trip = f"INSERT OR REPLACE INTO trips VALUES ({_places(len(schema.TRIP_COLUMNS))})"

    def write(self, rows: list[tuple[TripRows, TripRows]]) -> None:
        """Write the start and the end of every trip."""
        execute = self._connection.execute
        for started, finished in rows:
            execute("BEGIN IMMEDIATE")
            execute(self._trip, started.trip)
            execute("COMMIT")
            execute("BEGIN IMMEDIATE")
            execute(self._trip, finished.trip)
            for row in finished.components:
                execute("INSERT INTO key_components VALUES (?, ?, ?, ?)", row)
            for row in finished.stages:
                execute("INSERT INTO stages VALUES (?, ?, ?, ?)", row)
            execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _started(trip: Trip) -> Trip:
    return replace(trip, duration_ns=None, outcome=None, key=None, source=None, attributes={})


def lines() -> Iterator[Line]:
    """Measure both, each with a file of its own."""
    numbers = count()
    with tempfile.TemporaryDirectory() as folder:
        sink = RecordingSink(Path(folder) / "recording.db")
        plain = _Plain(Path(folder) / "plain.db")

        def next_trips() -> list[tuple[Trip, Trip]]:
            first = next(numbers) * _TRIPS
            ended = [a_trip(seq, session_of(0)) for seq in range(first, first + _TRIPS)]
            return [(_started(trip), trip) for trip in ended]

        def recorded() -> float:
            made = next_trips()

            def record() -> None:
                for started, finished in made:
                    sink.started(started)
                    sink.finished(finished)

            return processor_seconds(record)

        def inserted() -> float:
            rows = [(to_rows(started), to_rows(finished)) for started, finished in next_trips()]
            return processor_seconds(lambda: plain.write(rows))

        rounds = Rounds({"recorded": recorded, "inserted": inserted}, _ROUNDS)
        sink.close()
        plain.close()
    yield at_most("recording / plain sqlite3", 2, rounds.ratios("recorded", "inserted"))
