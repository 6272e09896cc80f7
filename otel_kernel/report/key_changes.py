"""Why a kernel was not found in the store, or was found although it should not have been.

A kernel that comes back under another key was compiled, or loaded, for another reason than the first time:
the parts of the key that differ say which. A part may also differ under one key, where the runtime leaves it
out of its key: then an artifact was loaded that was made from something else.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

_VERSIONS: Final = 16
"""Keys of one kernel that are remembered; a kernel with more is compared with the newest ones."""


@dataclass(frozen=True, slots=True)
class KeyChange:
    """Trips of one kernel that differ from an earlier trip in the same parts of the key."""

    layer: str
    kernel: str
    outcome: str
    same_key: bool
    """Whether the key is the same: the parts that differ are not in it."""
    differing: tuple[str, ...]
    """Names of the key components that differ; empty where only the rest of the key does."""
    equal: tuple[str, ...]
    """Names of the key components that are equal."""
    trips: int
    session: str
    """The last of these trips, with `seq`."""
    seq: int
    earlier_session: str
    """The earlier trip that it was compared with, with `earlier_seq`."""
    earlier_seq: int


class Version(NamedTuple):
    """A trip, as far as it is compared."""

    session: str
    seq: int
    started_ns: int
    outcome: str
    identity: str | None
    key_id: str
    key_build_id: str
    components: str
    """A JSON object."""

    @property
    def key(self) -> tuple[str, str]:
        """The key as a whole."""
        return self.key_id, self.key_build_id

    def is_like(self, other: Version) -> bool:
        """Whether nothing of the key differs."""
        return self.key == other.key and self.components == other.components

    def may_be_code_of(self, other: Version) -> bool:
        """Whether nothing speaks against both having been made from the same code."""
        return self.identity is None or other.identity is None or self.identity == other.identity

    def distance(self, other: Version) -> tuple[int, bool]:
        """Return how much of the key differs."""
        return len(_compared(self.components, other.components)[0]), self.key != other.key


@dataclass(slots=True)
class _Tally:
    """Counts the trips that differ from an earlier one in the same parts."""

    layer: str
    kernel: str
    last: Version
    earlier: Version
    trips: int = 0

    def count(self, version: Version, earlier: Version) -> None:
        """Count a trip."""
        self.trips += 1
        if version.started_ns >= self.last.started_ns:
            self.last, self.earlier = version, earlier

    def change(self) -> KeyChange:
        """Return what was counted."""
        differing, equal = _compared(self.last.components, self.earlier.components)
        return KeyChange(
            layer=self.layer,
            kernel=self.kernel,
            outcome=self.last.outcome,
            same_key=self.last.key == self.earlier.key,
            differing=differing,
            equal=equal,
            trips=self.trips,
            session=self.last.session,
            seq=self.last.seq,
            earlier_session=self.earlier.session,
            earlier_seq=self.earlier.seq,
        )


class History:
    """The versions of one kernel and specialization so far."""

    def __init__(self) -> None:
        self._versions: dict[tuple[object, ...], Version] = {}
        self._compiled: dict[tuple[str, str], Version] = {}

    def remember(self, version: Version) -> None:
        """Add a trip that started after all that were added."""
        what = (version.identity, version.key, version.components)
        self._versions.pop(what, None)
        self._versions[what] = version
        if len(self._versions) > _VERSIONS:
            del self._versions[next(iter(self._versions))]
        if version.outcome == "compiled":
            self._compiled[version.key] = version

    def counterpart(self, version: Version) -> Version | None:
        """Return the earlier trip that `version` is to be compared with, if there is one."""
        made = self._compiled.get(version.key)
        if version.outcome == "loaded" and made is not None:
            return made
        newest_first = list(reversed(self._versions.values()))
        candidates = [each for each in newest_first if each.may_be_code_of(version)]
        if not candidates:
            # Other code under the same name: an edit, unless one process has both.
            candidates = [each for each in newest_first if each.session != version.session]
        return min(candidates, key=version.distance, default=None)


@lru_cache(maxsize=1024)
def _compared(components: str, others: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the components that differ, and of those that are equal."""
    ones, twos = json.loads(components), json.loads(others)
    names = sorted(ones.keys() | twos.keys())
    differing = tuple(name for name in names if ones.get(name) != twos.get(name))
    return differing, tuple(name for name in names if name not in differing)


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

_INSTANCES: Final = """
CREATE TEMP TABLE instances (
    runtime TEXT, layer TEXT, kernel TEXT, specialization TEXT,
    key_id TEXT, key_build_id TEXT, components TEXT, several INTEGER,
    PRIMARY KEY (runtime, layer, kernel, specialization)
) WITHOUT ROWID
"""

_FILL_INSTANCES: Final = f"""
INSERT INTO instances
SELECT runtime, layer, kernel, coalesce(specialization, ''), key_id, key_build_id, {COMPONENTS}, 0
FROM trips
WHERE outcome IS NOT NULL AND +key_id IS NOT NULL
ON CONFLICT DO UPDATE SET several = 1
WHERE (key_id, key_build_id, components) <> (excluded.key_id, excluded.key_build_id, excluded.components)
"""

_VERSIONS_IN_ORDER: Final = f"""
SELECT
    trips.runtime, trips.layer, trips.kernel, coalesce(trips.specialization, ''),
    ?1 IS NULL OR sessions.run = ?1,
    trips.session, trips.seq, trips.started_ns, trips.outcome, trips.identity,
    trips.key_id, trips.key_build_id, {COMPONENTS}
FROM instances
CROSS JOIN trips ON  -- CROSS: in this order, since few instances have several versions
    trips.kernel = instances.kernel AND trips.layer = instances.layer AND trips.runtime = instances.runtime
    AND coalesce(trips.specialization, '') = instances.specialization
JOIN sessions ON sessions.id = trips.session
WHERE instances.several AND trips.outcome IS NOT NULL AND trips.key_id IS NOT NULL
ORDER BY 1, 2, 3, 4, trips.started_ns, trips.session, trips.seq
"""


def key_changes(connection: sqlite3.Connection, run: str | None, limit: int) -> tuple[KeyChange, ...]:
    """Return what has changed in the keys of the kernels of a run, the newest first.

    Each record with a key is compared with an earlier trip of the same kernel and specialization, of whichever
    run: a loaded one with the compilation that made its artifact, any other with the trip that it has most in
    common with.

    Args:
        connection: a recording; a temporary table stays behind.
        run: the run, or None for all.
        limit: the most changes to return.
    """
    connection.execute(_INSTANCES)
    connection.execute(_FILL_INSTANCES)
    tallies: dict[tuple[object, ...], _Tally] = {}
    rows = connection.execute(_VERSIONS_IN_ORDER, (run,))
    for instance, group in groupby(rows, key=lambda row: row[:4]):
        history = History()
        for row in group:
            version = Version(*row[5:])
            earlier = history.counterpart(version) if row[4] else None
            if earlier is not None and not version.is_like(earlier):
                differing, _ = _compared(version.components, earlier.components)
                what = (*instance[:3], version.outcome, version.key == earlier.key, differing)
                _, layer, kernel, _ = instance
                tallies.setdefault(what, _Tally(layer, kernel, version, earlier)).count(version, earlier)
            history.remember(version)
    newest = sorted(tallies.values(), key=lambda tally: tally.last.started_ns, reverse=True)
    return tuple(tally.change() for tally in newest[:limit])
