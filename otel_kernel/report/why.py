"""Why a kernel was compiled in one run although another run, before it, had it already."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from otel_kernel.report.instances import Instance, Kernel, Side
from otel_kernel.report.key_changes import COMPONENTS, History, Version

_RECORDS: Final = f"""
SELECT
    key_id IS NOT NULL, trips.specialization, host,
    key_absent_reason, store_location, store_stored, store_reason, store_rejected,
    session, seq, trips.started_ns, outcome, identity, key_id, key_build_id, {COMPONENTS}
FROM trips JOIN sessions ON sessions.id = trips.session
WHERE kernel = ?1 AND runtime = ?2 AND layer = ?3 AND outcome IS NOT NULL AND (?4 IS NULL OR run = ?4)
ORDER BY trips.started_ns, session, seq
"""


class Reason(str, Enum):
    """Why a kernel was compiled again."""

    KEY_CHANGED = "key_changed"
    """The store was asked for another key."""
    NO_KEY = "no_key"
    """The store was not asked: it is off, or does not serve this kernel."""
    OTHER_STORE = "other_store"
    """The key is the same, and the store another one."""
    DAMAGED = "damaged"
    """The entry could not be read."""
    NEVER_STORED = "never_stored"
    """The store had not taken the artifact."""
    LOST = "lost"
    """The key is the same, and the store held the artifact before."""
    UNKNOWN = "unknown"
    """The key is the same, and nobody said whether the store had taken the artifact."""


@dataclass(frozen=True, slots=True)
class Part:
    """A key component that differs; None where a key does not have it."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Why:
    """Why a kernel was compiled again."""

    reason: Reason
    detail: str | None = None
    """What the runtime said of it, or the two places."""
    differing: tuple[Part, ...] = ()
    equal: tuple[str, ...] = ()
    """Names of the key components that are equal."""


class Record(NamedTuple):
    """A record and what is known of its store."""

    has_key: int
    """Without one the key in `version` means nothing."""
    specialization: str | None
    host: str | None
    key_absent_reason: str | None
    location: str | None
    stored: int | None
    store_reason: str | None
    rejected: str | None
    version: Version

    @property
    def instance(self) -> Instance:
        """What tells it from other records of its kernel."""
        return Instance(self.version.identity, self.specialization)


_KNOWN: Final = len(Record._fields) - 1


def records_of(side: Side, kernel: Kernel) -> dict[Instance, list[Record]]:
    """Return the records of a kernel by instance and start."""
    records: dict[Instance, list[Record]] = defaultdict(list)
    rows = side.connection.execute(_RECORDS, (kernel.kernel, kernel.runtime, kernel.layer, side.run))
    for row in rows:
        record = Record._make((*row[:_KNOWN], Version(*row[_KNOWN:])))
        records[record.instance].append(record)
    return records


def why(before: Sequence[Record], after: Iterable[Record]) -> Why | None:
    """Return why the first record of `after` that was not loaded was not, or None if all were loaded.

    Args:
        before: the records of the same instance in the run before, by their start.
        after: those in the run after.
    """
    compiled = next((record for record in after if record.version.outcome != "loaded"), None)
    if compiled is None:
        return None
    if not compiled.has_key:
        return Why(Reason.NO_KEY, _why_without_key(compiled))
    known = {record.version: record for record in before if record.has_key}
    history = History()
    for version in known:
        history.remember(version)
    nearest = history.counterpart(compiled.version)
    if nearest is None:
        return Why(Reason.NEVER_STORED, _why_without_key(before[-1]) if before else None)
    if nearest.key != compiled.version.key:
        return _key_changed(nearest, compiled.version)
    if compiled.rejected is not None:
        return Why(Reason.DAMAGED, compiled.rejected)
    same = [record for version, record in known.items() if version.key == nearest.key]
    return _not_found(same, compiled)


def _why_without_key(record: Record) -> str | None:
    return record.store_reason or record.key_absent_reason


def _key_changed(before: Version, after: Version) -> Why:
    ones, twos = _components(before), _components(after)
    names = sorted(ones.keys() | twos.keys())
    return Why(
        Reason.KEY_CHANGED,
        differing=tuple(
            Part(name, ones.get(name), twos.get(name)) for name in names if ones.get(name) != twos.get(name)
        ),
        equal=tuple(name for name in names if ones.get(name) == twos.get(name)),
    )


def _components(version: Version) -> dict[str, str]:
    return {name: str(value) for name, value in json.loads(version.components).items()}


def _not_found(before: Sequence[Record], after: Record) -> Why:
    """Return why the store did not have what was compiled or loaded under the same key before."""
    held = [record for record in before if record.stored or record.version.outcome == "loaded"]
    if not held:
        refused = [record for record in before if record.stored == 0]
        return Why(Reason.NEVER_STORED, refused[-1].store_reason) if refused else Why(Reason.UNKNOWN)
    places = [(record.host, record.location) for record in held]
    if (after.host, after.location) not in places:
        host, location = places[-1]
        if host != after.host:
            return Why(
                Reason.OTHER_STORE, f"on host {host or 'unknown'} before, on {after.host or 'unknown'} now"
            )
        return Why(Reason.OTHER_STORE, f"{location} before, {after.location} now")
    return Why(Reason.LOST, after.location)
