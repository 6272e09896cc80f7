"""Why kernels of a run were compiled although an earlier trip had them, for a summary."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from otel_kernel.report.history import COMPONENTS, Record, records_of
from otel_kernel.report.kernels import Kernel
from otel_kernel.report.why import Reason, Why, why

_UNSAID: Final = (Reason.FIRST, Reason.SPECIALIZATION, Reason.UNKNOWN)

_COMPILED: Final = 1000
"""Trips that are explained at most, the newest ones."""

_RECORDS: Final = 1000
"""Records of one kernel that are looked at, the newest ones."""

_NEWEST_COMPILED: Final = """
SELECT runtime, layer, kernel, session, seq FROM scope
WHERE state IN ('compiled', 'rekeyed') AND NOT internal
ORDER BY started_ns DESC, session, seq LIMIT ?
"""

# Loaded trips whose key components are not those of the compilation under their key. Most keys have one set of
# components, so those with several are found first.
_ARTIFACTS: Final = """
CREATE TEMP TABLE artifacts (
    runtime TEXT, layer TEXT, kernel TEXT, key_id TEXT, key_build_id TEXT, components TEXT, several INTEGER,
    PRIMARY KEY (runtime, layer, kernel, key_id, key_build_id)
) WITHOUT ROWID
"""
_FILL_ARTIFACTS: Final = f"""
INSERT INTO artifacts
SELECT runtime, layer, kernel, key_id, key_build_id, {COMPONENTS}, 0
FROM trips
WHERE outcome IS NOT NULL AND +key_id IS NOT NULL
ON CONFLICT DO UPDATE SET several = 1 WHERE components <> excluded.components
"""
_LOADED: Final = """
SELECT runtime, layer, kernel, session, seq
FROM artifacts
CROSS JOIN trips USING (runtime, layer, kernel, key_id, key_build_id)  -- CROSS: in this order
CROSS JOIN scope USING (session, seq, runtime, layer, kernel)
WHERE several AND state = 'loaded' AND NOT scope.internal
ORDER BY scope.started_ns DESC, session, seq LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class Explained:
    """Trips of one kernel with one reason."""

    kernel: Kernel
    record: Record
    """The last of them."""
    why: Why
    """Of that one."""
    trips: int


def explained(connection: sqlite3.Connection, limit: int) -> tuple[Explained, ...]:
    """Return why trips in scope were compiled again, or loaded as something else, the newest first.

    What no earlier trip had is left out: a kernel's first trip, and its first for other types or shapes. So are
    functions of the runtimes' libraries.

    Args:
        connection: a recording with the temporary table `scope`; another one stays behind.
        limit: the most entries to return.
    """
    connection.execute(_ARTIFACTS)
    connection.execute(_FILL_ARTIFACTS)
    found: dict[tuple[object, ...], Explained] = {}
    for kernel, record, reason in _explained(connection):
        what = (
            kernel,
            record.outcome,
            reason.reason,
            reason.detail,
            tuple(part.name for part in reason.differing),
        )
        known = found.get(what)
        if known is None:
            found[what] = Explained(kernel, record, reason, 1)
        else:
            newer = record.started_ns > known.record.started_ns
            last = replace(known, record=record, why=reason) if newer else known
            found[what] = replace(last, trips=known.trips + 1)
    newest = sorted(found.values(), key=lambda each: each.record.started_ns, reverse=True)
    return tuple(newest[:limit])


def _explained(connection: sqlite3.Connection) -> Iterator[tuple[Kernel, Record, Why]]:
    wanted: dict[Kernel, set[tuple[str, int]]] = defaultdict(set)
    for statement in (_NEWEST_COMPILED, _LOADED):
        for *kernel, session, seq in connection.execute(statement, (_COMPILED,)):
            wanted[Kernel(*kernel)].add((session, seq))
    for kernel, identities in wanted.items():
        if len(identities) == 1 and _is_only(connection, kernel):
            continue
        records = records_of(connection, kernel, newest=_RECORDS)
        for place, record in enumerate(records):
            if (record.session, record.seq) not in identities:
                continue
            reason = why(record, records[:place])
            if reason is not None and reason.reason not in _UNSAID:
                yield kernel, record, reason


def _is_only(connection: sqlite3.Connection, kernel: Kernel) -> bool:
    rows = connection.execute(
        "SELECT 1 FROM trips WHERE kernel = ? AND runtime = ? AND layer = ? AND outcome IS NOT NULL LIMIT 2",
        (kernel.kernel, kernel.runtime, kernel.layer),
    )
    return len(rows.fetchall()) == 1
