"""The SQL of a report.

`prepare` copies the few columns that most questions need, for the trips in scope, into the narrow table
`scope`: reading the wide table `trips` once is most of the time that a report takes. Whatever is asked about
earlier runs is read from `trips` itself. Times are summed as floats, since SQLite's sum of integers fails
when it overflows; up to 104 days the sum is exact.
"""

from __future__ import annotations

import sqlite3
from typing import Final

_SCOPE: Final = """
CREATE TEMP TABLE scope (
    session TEXT, seq INTEGER, parent_seq INTEGER, runtime TEXT, layer TEXT, kernel TEXT, internal INTEGER,
    state TEXT, started_ns INTEGER, duration_ns INTEGER, phase TEXT,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID
"""

# Time of the children in the same layer, by the nearest ancestor that is in it.
_CHILDREN: Final = """
CREATE TEMP TABLE children (
    session TEXT, seq INTEGER, duration_ns INTEGER,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID
"""

# Loaded trips inside another loaded trip, of whichever layer: the time that they save is in that one's.
_COVERED: Final = """
CREATE TEMP TABLE covered (
    session TEXT, seq INTEGER,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID
"""

# The last compilation under each key, of all runs.
_COMPILATIONS: Final = """
CREATE TEMP TABLE compilations (
    key_id TEXT, key_build_id TEXT, layer TEXT, started_ns INTEGER, duration_ns INTEGER,
    PRIMARY KEY (key_id, key_build_id, layer)
) WITHOUT ROWID
"""

_FILL_SCOPE: Final = """
INSERT INTO scope
SELECT
    session, seq, parent_seq, runtime, layer, kernel, coalesce(internal, 0),
    CASE
        WHEN outcome IS NOT NULL THEN outcome
        WHEN error_type IS NOT NULL THEN 'failed'
        WHEN abandoned IS NOT NULL THEN 'abandoned'
        ELSE 'unfinished'
    END,
    started_ns, duration_ns, phase
FROM trips
WHERE ?1 IS NULL OR session IN (SELECT id FROM sessions WHERE run = ?1)
"""

_FILL_CHILDREN: Final = """
INSERT INTO children
WITH RECURSIVE climb (session, ancestor, runtime, layer, duration_ns) AS (
    SELECT session, parent_seq, runtime, layer, duration_ns
    FROM scope
    WHERE parent_seq IS NOT NULL AND duration_ns IS NOT NULL
    UNION ALL
    SELECT climb.session, outer_trip.parent_seq, climb.runtime, climb.layer, climb.duration_ns
    FROM climb JOIN scope AS outer_trip ON outer_trip.session = climb.session AND outer_trip.seq = climb.ancestor
    WHERE (outer_trip.runtime, outer_trip.layer) <> (climb.runtime, climb.layer) AND outer_trip.parent_seq IS NOT NULL
)
SELECT outer_trip.session, outer_trip.seq, climb.duration_ns
FROM climb JOIN scope AS outer_trip ON outer_trip.session = climb.session AND outer_trip.seq = climb.ancestor
WHERE (outer_trip.runtime, outer_trip.layer) = (climb.runtime, climb.layer)
ON CONFLICT DO UPDATE SET duration_ns = duration_ns + excluded.duration_ns
"""

_FILL_COVERED: Final = """
INSERT OR IGNORE INTO covered
WITH RECURSIVE climb (session, seq, ancestor) AS (
    SELECT session, seq, parent_seq FROM scope WHERE state = 'loaded' AND parent_seq IS NOT NULL
    UNION ALL
    SELECT climb.session, climb.seq, outer_trip.parent_seq
    FROM climb JOIN scope AS outer_trip ON outer_trip.session = climb.session AND outer_trip.seq = climb.ancestor
    WHERE outer_trip.state <> 'loaded' AND outer_trip.parent_seq IS NOT NULL
)
SELECT climb.session, climb.seq
FROM climb JOIN scope AS outer_trip ON outer_trip.session = climb.session AND outer_trip.seq = climb.ancestor
WHERE outer_trip.state = 'loaded'
"""

# The plus keeps SQLite from going through the index on keys, where each row has to be looked up by itself.
_FILL_COMPILATIONS: Final = """
INSERT INTO compilations
SELECT key_id, key_build_id, layer, started_ns, duration_ns
FROM trips
WHERE outcome = 'compiled' AND +key_id IS NOT NULL
ON CONFLICT DO UPDATE SET started_ns = excluded.started_ns, duration_ns = excluded.duration_ns
WHERE excluded.started_ns >= started_ns
"""


def prepare(connection: sqlite3.Connection, run: str | None) -> None:
    """Make and fill the temporary tables for the trips of one run, or of all with None."""
    prepare_own_times(connection, run)
    connection.execute(_COVERED)
    connection.execute(_FILL_COVERED)
    connection.execute(_COMPILATIONS)
    connection.execute(_FILL_COMPILATIONS)


def prepare_own_times(connection: sqlite3.Connection, run: str | None) -> None:
    """Make and fill only `scope` and `children`."""
    prepare_scope(connection, run)
    connection.execute(_CHILDREN)
    connection.execute(_FILL_CHILDREN)


def prepare_scope(connection: sqlite3.Connection, run: str | None) -> None:
    """Make and fill only `scope`."""
    connection.execute(_SCOPE)
    connection.execute(_FILL_SCOPE, (run,))


def drop_own_times(connection: sqlite3.Connection) -> None:
    """Make room for those of another run."""
    connection.execute("DROP TABLE temp.scope")
    connection.execute("DROP TABLE temp.children")


EXTENT: Final = """
SELECT count(DISTINCT sessions.run), count(*), min(first.started_ns)
FROM (SELECT session, min(started_ns) AS started_ns FROM scope GROUP BY session) AS first
JOIN sessions ON sessions.id = first.session
"""
"""Runs, processes and start of the first trip."""

KERNELS: Final = """
SELECT
    runtime, layer, internal, kernel,
    CAST(total(max(0, scope.duration_ns - coalesce(children.duration_ns, 0))) AS INTEGER) AS own_ns,
    sum(state = 'compiled'), sum(state = 'loaded'), sum(state = 'rekeyed'),
    sum(state = 'failed'), sum(state = 'abandoned'), sum(state = 'unfinished')
FROM scope LEFT JOIN children USING (session, seq)
GROUP BY runtime, layer, internal, kernel
ORDER BY runtime, layer, own_ns DESC, kernel
"""
"""Runtime, layer, whether internal, kernel, own time, and trips by how they ended, by layer and own time."""

# A trip adds what it reaches beyond all trips that started before it.
_ADDED: Final = "max(0, ended_ns - max(started_ns, coalesce(reached_ns, started_ns)))"


def _intervals(partition: str) -> str:
    return f"""
    SELECT
        *,
        started_ns + duration_ns AS ended_ns,
        max(started_ns + duration_ns) OVER (
            PARTITION BY {partition} ORDER BY started_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM scope
    WHERE duration_ns IS NOT NULL
    """


SPENT: Final = f"SELECT CAST(total({_ADDED}) AS INTEGER) FROM ({_intervals('session')})"
"""Union of the intervals of all trips in each process, summed over processes."""

SESSIONS_SPENT: Final = f"""
SELECT session, CAST(total({_ADDED}) AS INTEGER) AS spent_ns FROM ({_intervals("session")}) GROUP BY session
"""
"""The same for each process by itself."""

LAYERS_SPENT: Final = f"""
SELECT runtime, layer, CAST(total({_ADDED}) AS INTEGER)
FROM ({_intervals("session, runtime, layer")})
GROUP BY runtime, layer
"""
"""The same for each layer by itself, summed over processes."""

_TOOK: Final = "coalesce(compilations.duration_ns, trips.compilation_original_ns)"

SAVED: Final = f"""
SELECT
    scope.runtime, scope.layer, count(*), count(*) - count({_TOOK}),
    count({_TOOK}) - count(compilations.duration_ns),
    CAST(total(max(0, {_TOOK} - scope.duration_ns)) AS INTEGER)
FROM scope
CROSS JOIN trips USING (session, seq)  -- CROSS: in this order
LEFT JOIN compilations USING (key_id, key_build_id, layer)
LEFT JOIN covered ON covered.session = scope.session AND covered.seq = scope.seq
WHERE scope.state = 'loaded' AND covered.seq IS NULL
GROUP BY scope.runtime, scope.layer
"""
"""Runtime, layer, outermost loaded trips, those without a known time to compile, those with what the artifact
remembers of it, and the time saved by the known ones."""

_NEWEST: Final = """
FROM scope
CROSS JOIN trips USING (session, seq)
JOIN sessions ON sessions.id = scope.session
WHERE scope.state = '{state}'
ORDER BY scope.started_ns DESC, scope.session, scope.seq
LIMIT ?
"""
_WHICH: Final = "SELECT session, seq, coalesce(trips.process_pid, sessions.pid), scope.layer, scope.kernel, "

FAILED: Final = f"{_WHICH} scope.started_ns, trips.error_type, trips.message {_NEWEST.format(state='failed')}"
"""The newest failed trips."""

UNFINISHED: Final = f"{_WHICH} scope.started_ns, sessions.pid_space, sessions.process_start {_NEWEST.format(state='unfinished')}"
"""The newest unfinished trips, with what tells whether their processes live."""
