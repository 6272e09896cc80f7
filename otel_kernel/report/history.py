"""Records of one kernel, as far as they are compared, and which of the earlier ones explains a later one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

from otel_kernel.report.components import Comparison, Kind, compared
from otel_kernel.report.kernels import Instance, Kernel

_CANDIDATES: Final = 64
"""Different earlier records that one is compared with, the newest ones."""

_NAMED: Final = """(
    SELECT json_group_object(name, value) FROM key_components
    WHERE key_components.session = trips.session AND key_components.seq = trips.seq
)"""

COMPONENTS: Final = f"""
    CASE
        WHEN key_component_other IS NULL OR NOT json_valid(key_component_other) THEN {_NAMED}
        ELSE json_patch({_NAMED}, key_component_other)
    END
"""
"""SQL: the key components of a row of `trips`, as a JSON object."""

# Chosen first: key components are put together for these only.
_RECORDS: Final = f"""
WITH chosen AS MATERIALIZED (
    SELECT session, seq FROM trips JOIN sessions ON sessions.id = trips.session
    WHERE kernel = ?1 AND runtime = ?2 AND layer = ?3 AND outcome IS NOT NULL AND (?4 IS NULL OR run = ?4)
    ORDER BY trips.started_ns DESC, session DESC, seq DESC LIMIT ?5
)
SELECT
    trips.session, seq, sessions.run, host, trips.started_ns, duration_ns, outcome, identity,
    specialization, target, build, key_id, key_build_id, {COMPONENTS}, key_absent_reason,
    store_location, store_stored, store_reason, store_rejected, store_lookup, compilation_reason,
    code_file_path || ':' || code_line_number, phase
FROM chosen CROSS JOIN trips USING (session, seq)  -- CROSS: in this order
JOIN sessions ON sessions.id = trips.session
ORDER BY trips.started_ns, trips.session, seq
"""


class Record(NamedTuple):
    """A record, and what is known of its store."""

    session: str
    seq: int
    run: str
    host: str | None
    started_ns: int
    duration_ns: int
    outcome: str
    identity: str | None
    specialization: str | None
    target: str | None
    build: str | None
    key_id: str | None
    key_build_id: str | None
    components: str
    """A JSON object."""
    key_absent_reason: str | None
    location: str | None
    stored: int | None
    store_reason: str | None
    rejected: str | None
    lookup: str | None
    reason: str | None
    """What the runtime says of why it compiled."""
    place: str | None
    """File and line of the function."""
    phase: str | None

    @property
    def key(self) -> tuple[str, str | None] | None:
        """The key as a whole, or None without one."""
        return None if self.key_id is None else (self.key_id, self.key_build_id)

    @property
    def instance(self) -> Instance:
        """What tells it from other records of its kernel."""
        return Instance(self.identity, self.specialization)

    @property
    def ended_ns(self) -> int:
        """When it was there."""
        return self.started_ns + self.duration_ns

    @property
    def is_held(self) -> bool:
        """Whether the store had the artifact then."""
        return bool(self.stored) or self.outcome == "loaded"

    def compared_with(self, earlier: Record) -> Comparison:
        """Return what differs from an earlier record."""
        return compared(earlier.components, self.components, earlier._attributes, self._attributes)

    def may_be_code_of(self, earlier: Record) -> bool:
        """Whether it may have been made from another version of the same function.

        Two functions of one name in a process, such as two lambdas, are no versions of one; what tells them apart
        is where they are, or that they differ without anything else to tell why.
        """
        if self.session != earlier.session or self.identity is None or self.identity == earlier.identity:
            return True
        if self.place is not None and earlier.place is not None:
            return self.place == earlier.place
        return Kind.SPECIALIZATION in self.compared_with(earlier).kinds

    @property
    def _attributes(self) -> tuple[str | None, ...]:
        return self.specialization, self.target, self.build


def records_of(
    connection: sqlite3.Connection, kernel: Kernel, run: str | None = None, *, newest: int = -1
) -> list[Record]:
    """Return records of a kernel by their start.

    Args:
        connection: a recording.
        kernel: the kernel.
        run: only those of this run.
        newest: only so many, those that started last.
    """
    rows = connection.execute(_RECORDS, (kernel.kernel, kernel.runtime, kernel.layer, run, newest))
    return [Record._make(row) for row in rows]


def nearest(record: Record, earlier: Sequence[Record]) -> Record | None:
    """Return the earlier record under another key that `record` has most in common with.

    One of the same code, specialization and target comes first, whatever its key and its host.

    Args:
        record: the record.
        earlier: records of its kernel that started before, by their start.
    """
    candidates: dict[tuple[object, ...], Record] = {}
    for each in reversed(earlier):
        what = (each.session == record.session, each.instance, each.key, each.components)
        if what not in candidates and each.may_be_code_of(record):
            candidates[what] = each
            if len(candidates) == _CANDIDATES:
                break
    return min(
        candidates.values(),
        key=lambda each: (not _is_same(record, each), *record.compared_with(each).distance),
        default=None,
    )


def _is_same(record: Record, earlier: Record) -> bool:
    return record.identity is not None and record.identity == earlier.identity
