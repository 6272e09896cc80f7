"""A report over 1,000,000 trips in a recording, beside the bare SQL for the same facts.

The bare SQL is `FACTS`: one plain statement for each fact of a report, on the tables of the recording and with
nothing kept from one to the next. It takes short cuts that a report must not: only direct children are taken
off a trip's own time, and of a key that has changed it says no more than that it has.
"""

from __future__ import annotations

import io
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from benchmarks.harness import Line, Rounds, at_most, processor_seconds
from benchmarks.trips import session_of, trips
from otel_kernel.recording import schema
from otel_kernel.recording.file import create
from otel_kernel.recording.rows import to_rows
from otel_kernel.report.opening import opened
from otel_kernel.report.render import print_summary
from otel_kernel.report.summary import summarize

_SESSIONS = 1_000
_TRIPS = 1_000
"""Of each session."""
_ROUNDS = 3

_INTERVALS: Final = """
    SELECT runtime, layer, started_ns, started_ns + duration_ns AS ended_ns, max(started_ns + duration_ns) OVER (
        PARTITION BY {partition} ORDER BY started_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS reached_ns
    FROM trips WHERE duration_ns IS NOT NULL
"""

FACTS: Final = {
    "runs, processes and the first start": """
        SELECT count(DISTINCT run), count(DISTINCT sessions.id), min(trips.started_ns)
        FROM trips JOIN sessions ON sessions.id = trips.session
    """,
    "trips and own time of each kernel, by how they ended": """
        SELECT
            runtime, layer, internal, kernel, sum(max(0, duration_ns - coalesce(inner_ns, 0))) AS own_ns,
            count(*), sum(outcome = 'compiled'), sum(outcome = 'loaded'), sum(outcome = 'rekeyed'),
            count(error_type), count(abandoned)
        FROM trips
        LEFT JOIN (
            SELECT session, parent_seq AS seq, sum(duration_ns) AS inner_ns
            FROM trips WHERE parent_seq IS NOT NULL GROUP BY 1, 2
        ) USING (session, seq)
        GROUP BY 1, 2, 3, 4
        ORDER BY 1, 2, own_ns DESC
    """,
    "time spent in each layer, where trips overlap once": f"""
        SELECT runtime, layer, sum(max(0, ended_ns - max(started_ns, coalesce(reached_ns, started_ns))))
        FROM ({_INTERVALS.format(partition="session, runtime, layer")}) GROUP BY 1, 2
    """,
    "time that the store has saved": """
        SELECT loaded.runtime, loaded.layer, count(*), sum(max(0, compiled.duration_ns - loaded.duration_ns))
        FROM trips AS loaded
        LEFT JOIN (
            SELECT key_id, key_build_id, layer, duration_ns, max(started_ns)
            FROM trips WHERE outcome = 'compiled' GROUP BY 1, 2, 3
        ) AS compiled USING (key_id, key_build_id, layer)
        WHERE loaded.outcome = 'loaded'
        GROUP BY 1, 2
    """,
    "the newest failed trips": """
        SELECT session, seq, layer, kernel, started_ns, error_type, message
        FROM trips WHERE error_type IS NOT NULL ORDER BY started_ns DESC LIMIT 20
    """,
    "the newest unfinished trips": """
        SELECT session, seq, layer, kernel, started_ns
        FROM trips WHERE duration_ns IS NULL ORDER BY started_ns DESC LIMIT 20
    """,
    "kernels whose key, or a component of it, has changed": """
        SELECT runtime, layer, kernel, specialization
        FROM (
            SELECT runtime, layer, kernel, specialization, key_id, key_build_id, (
                SELECT group_concat(name || '=' || value) FROM key_components
                WHERE key_components.session = trips.session AND key_components.seq = trips.seq
            ) AS components
            FROM trips WHERE outcome IS NOT NULL AND +key_id IS NOT NULL
        )
        GROUP BY 1, 2, 3, 4
        HAVING min(key_id) < max(key_id) OR min(key_build_id) < max(key_build_id)
            OR min(components) < max(components)
    """,
}
"""The bare SQL by the fact that it finds."""


def _columns(*changed: tuple[str, str]) -> str:
    changes = dict(changed)
    return ", ".join(changes.get(name, f"trips.{name}") for name in schema.TRIP_COLUMNS)


def _fill(path: Path) -> None:
    """Write one session and copy it, an hour later each time: quicker than to make every trip."""
    create(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for number in range(_SESSIONS):
            session = session_of(number)
            row = (session.id, session.run, number, *(None,) * (len(schema.SESSION_COLUMNS) - 3))
            connection.execute(f"INSERT INTO sessions VALUES ({', '.join('?' * len(row))})", row)
        for trip in trips(_TRIPS):
            rows = to_rows(trip)
            places = ", ".join("?" * len(rows.trip))
            connection.execute(f"INSERT INTO trips VALUES ({places})", rows.trip)
            connection.executemany("INSERT INTO key_components VALUES (?, ?, ?, ?)", rows.components)
            connection.executemany("INSERT INTO stages VALUES (?, ?, ?, ?)", rows.stages)
        template = session_of(0).id
        moved = _columns(
            ("session", "sessions.id"),
            ("started_ns", "trips.started_ns + sessions.started_ns * 3600000000000"),
        )
        for insert in (
            f"INSERT INTO trips SELECT {moved} FROM sessions CROSS JOIN trips",
            "INSERT INTO key_components SELECT sessions.id, seq, name, value FROM sessions CROSS JOIN key_components",
            "INSERT INTO stages SELECT sessions.id, seq, name, duration_ns FROM sessions CROSS JOIN stages",
        ):
            connection.execute(f"{insert} WHERE session = ?1 AND sessions.id <> ?1", (template,))
        connection.execute("COMMIT")


def _report(path: Path) -> None:
    def lost(problem: object) -> None:
        raise RuntimeError(problem)

    with opened(path, lost) as recording:
        print_summary(summarize(recording.connection), io.StringIO())


def _bare(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA cache_size = -65536")  # as much as a report may use
        for statement in FACTS.values():
            connection.execute(statement).fetchall()


def lines() -> Iterator[Line]:
    """Measure a report over all runs, printed, beside the statements of `FACTS`."""
    with tempfile.TemporaryDirectory(dir="build") as folder:
        path = Path(folder) / "recording.db"
        _fill(path)
        rounds = Rounds(
            {
                "report": lambda: processor_seconds(lambda: _report(path)),
                "bare": lambda: processor_seconds(lambda: _bare(path)),
            },
            _ROUNDS,
        )
    yield at_most("report over 1,000,000 trips / bare SQL", 3, rounds.ratios("report", "bare"))
