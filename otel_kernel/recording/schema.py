"""The tables of a recording, made from the names in `semconv`.

Anyone may query a recording with plain SQL:

- `sessions`: one row for each process that had a trip. `id` and `run` as in `compute.kernel.session.*`;
  `started_ns` start of its first trip, ns since the Unix epoch; `host`, `pid`, `ppid`; `program` the last part
  of its `sys.argv[0]`; `python` its version, `3.11.7`. `pid_space` (boot and pid namespace in which `pid` means
  something) and `process_start` (clock ticks from boot to its start) tell a live process from another one with
  the same pid. All but the first three are NULL where they are not known.
- `trips`: one row for each trip, written when it starts and replaced when it ends. `session` and `seq` are its
  identity; `parent_seq` is the trip of the same session that it ran inside; `runtime`, `layer`, `kernel`;
  `started_ns`; `duration_ns`, NULL on an unfinished trip alone; exactly one of `outcome` (a record),
  `error_type` (failed) and `abandoned`, or none of them (unfinished); `message`; `key_id` and `key_build_id`,
  32 hex digits each, both NULL without a key; `trace_id` and `span_id` of its span, if it had one.
- `trips` of the texts `ir` and `source` alike: `ir_kept` says what is at hand (`whole`: in `texts` under the
  sha256; `prefix`: in `ir_prefix`; `digest`: nothing more; NULL: there was no text), `ir_sha256` and `ir_size`
  (bytes in UTF-8) are those of the whole text.
- `trips` of all else: one column for each attribute that no field holds, named after it without
  `compute.kernel.` and with underscores for dots: `store_kind`, `compilation_reason`, `target`, `rank`.
  Durations are ns, sizes bytes, BOOLEAN is 0 or 1. `attributes_other` is a JSON object of attributes that have
  no column here.
- `key_components` and `stages`: the attributes `key.component.<name>` and `stage.<name>` of a trip.
- `texts`: kernel texts by sha256, each once, whichever trips share it.

The views `records`, `failures` and `unfinished` hold the trips of that kind, with `run`, `host`, `pid` and
`program` of their session; `kernels` and `runs` count. Never sum `duration_ns` over layers or threads.
"""

from __future__ import annotations

from typing import Final

from otel_kernel import semconv
from otel_kernel.mapping import CONTEXT_ATTRIBUTES

APPLICATION_ID: Final = int.from_bytes(b"otkr", "big")
"""Marks a SQLite file as a recording, in its header."""

USER_VERSION: Final = 1
"""Version of the tables, in the header of a recording. A new or changed column needs a new version."""

ATTRIBUTE_COLUMNS: Final = {
    name: name.removeprefix(semconv.NAMESPACE).replace(".", "_") for name in CONTEXT_ATTRIBUTES
}
"""Column of `trips` by the attribute that it holds."""

FIELD_COLUMNS: Final = {
    "session": "TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE",
    "seq": "INTEGER NOT NULL",
    "parent_seq": "INTEGER",
    "runtime": "TEXT NOT NULL",
    "layer": "TEXT NOT NULL",
    "kernel": "TEXT NOT NULL",
    "started_ns": "INTEGER NOT NULL",
    "duration_ns": "INTEGER",
    "outcome": "TEXT",
    "abandoned": "TEXT",
    "error_type": "TEXT",
    "message": "TEXT",
    "key_id": "TEXT",
    "key_build_id": "TEXT",
    "trace_id": "TEXT",
    "span_id": "TEXT",
    "ir_kept": "TEXT",
    "ir_sha256": "TEXT",
    "ir_size": "INTEGER",
    "source_kept": "TEXT",
    "source_sha256": "TEXT",
    "source_size": "INTEGER",
}
"""Columns of `trips` for the fields of a trip, with their SQL types."""

LONG_COLUMNS: Final = {"attributes_other": "TEXT", "ir_prefix": "TEXT", "source_prefix": "TEXT"}
"""Columns of `trips` that may be long, and so come last."""

_SQL_TYPES: Final = {str: "TEXT", int: "INTEGER", bool: "BOOLEAN"}

TRIP_COLUMNS: Final = {
    **FIELD_COLUMNS,
    **{column: _SQL_TYPES[semconv.ATTRIBUTES[name].type] for name, column in ATTRIBUTE_COLUMNS.items()},
    **LONG_COLUMNS,
}
"""All columns of `trips` in their order, with their SQL types."""

SESSION_COLUMNS: Final = (
    "id",
    "run",
    "started_ns",
    "host",
    "pid",
    "ppid",
    "program",
    "python",
    "pid_space",
    "process_start",
)
"""All columns of `sessions`, in their order."""

_COUNTS: Final = """\
    count(trips.seq) AS trips,
    count(CASE trips.outcome WHEN 'compiled' THEN 1 END) AS compiled,
    count(CASE trips.outcome WHEN 'loaded' THEN 1 END) AS loaded,
    count(CASE trips.outcome WHEN 'rekeyed' THEN 1 END) AS rekeyed,
    count(trips.error_type) AS failed,
    count(trips.abandoned) AS abandoned,
    count(trips.seq) - count(trips.duration_ns) AS unfinished"""


def _trips_view(name: str, condition: str) -> str:
    return f"""\
CREATE VIEW {name} AS
SELECT sessions.run, sessions.host, sessions.pid, sessions.program, trips.*
FROM trips JOIN sessions ON sessions.id = trips.session
WHERE {condition};
"""


def _ddl() -> str:
    trip_columns = ",\n".join(f"    {name} {kind}" for name, kind in TRIP_COLUMNS.items())
    # Rows that share the primary key's order lie together without a second tree: cheaper to write and to
    # read than tables with a rowid. Only `texts` has rows too long for that.
    return f"""\
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {USER_VERSION};

CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    run TEXT NOT NULL,
    started_ns INTEGER NOT NULL,
    host TEXT,
    pid INTEGER,
    ppid INTEGER,
    program TEXT,
    python TEXT,
    pid_space TEXT,
    process_start INTEGER
) WITHOUT ROWID;
CREATE INDEX sessions_by_run ON sessions (run, started_ns);

CREATE TABLE trips (
{trip_columns},
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
CREATE INDEX trips_by_key ON trips (key_id, key_build_id) WHERE key_id IS NOT NULL;
CREATE INDEX trips_by_kernel ON trips (kernel);

CREATE TABLE key_components (
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (session, seq, name),
    FOREIGN KEY (session, seq) REFERENCES trips (session, seq) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE stages (
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    duration_ns INTEGER NOT NULL,
    PRIMARY KEY (session, seq, name),
    FOREIGN KEY (session, seq) REFERENCES trips (session, seq) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE texts (
    sha256 TEXT NOT NULL PRIMARY KEY,
    text TEXT NOT NULL
);

{_trips_view("records", "trips.outcome IS NOT NULL")}
{_trips_view("failures", "trips.error_type IS NOT NULL")}
{_trips_view("unfinished", "trips.duration_ns IS NULL")}
CREATE VIEW kernels AS
SELECT
    trips.runtime,
    trips.layer,
    trips.kernel,
{_COUNTS},
    coalesce(sum(trips.duration_ns), 0) AS duration_ns
FROM trips
GROUP BY trips.runtime, trips.layer, trips.kernel;

CREATE VIEW runs AS
SELECT
    first.run,
    first.started_ns,
    max(trips.started_ns + coalesce(trips.duration_ns, 0)) AS last_ns,
    first.host,
    first.pid,
    first.program,
    count(DISTINCT every.id) AS processes,
{_COUNTS}
FROM sessions AS first
JOIN sessions AS every ON every.run = first.run
LEFT JOIN trips ON trips.session = every.id
WHERE first.id = (
    SELECT id FROM sessions AS earlier WHERE earlier.run = first.run ORDER BY started_ns, id LIMIT 1
)
GROUP BY first.run;
"""


DDL: Final = _ddl()
"""Makes an empty recording: for `sqlite3.Connection.executescript`."""
