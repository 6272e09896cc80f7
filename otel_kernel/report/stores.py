"""What the stores of the runtimes gave and took: whether they are there, and whether they can be written."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from typing import Final

MAX_REASONS: Final = 5
"""Reasons of a store that are told, the most frequent ones."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a store did not take artifacts, as the runtime says; None where it does not."""

    reason: str | None
    trips: int


@dataclass(frozen=True, slots=True)
class Store:
    """One store, as one layer uses it; without a kind and a location where a trip had none."""

    layer: str
    kind: str | None
    location: str | None
    processes: int
    loaded: int
    """Records that it gave the artifact of."""
    stored: int
    """Artifacts that it took."""
    not_stored: int
    """Artifacts that it did not take."""
    damaged: int
    """Entries that could not be read."""
    reasons: tuple[Reason, ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether the trips had a store at all."""
        return self.kind is not None or self.location is not None


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of a run, or of all runs."""

    run: str | None
    stores: tuple[Store, ...]


_STORES: Final = """
SELECT layer, store_kind, store_location, count(DISTINCT session), total(outcome = 'loaded'),
    total(store_stored = 1), total(store_stored = 0), count(store_rejected)
FROM records
WHERE ?1 IS NULL OR run = ?1
GROUP BY layer, store_kind, store_location
ORDER BY layer, store_kind, store_location
"""

_REASONS: Final = """
SELECT store_reason, count(*)
FROM records
WHERE (?1 IS NULL OR run = ?1) AND store_stored = 0 AND layer = ?2 AND store_kind IS ?3 AND store_location IS ?4
GROUP BY store_reason
ORDER BY count(*) DESC, store_reason
LIMIT ?5
"""


def by_store(connection: sqlite3.Connection, run: str | None) -> Stores:
    """Return what each store gave and took.

    Args:
        connection: a recording.
        run: the id of a run, or None for all.
    """
    found = [
        Store(layer, kind, location, processes, int(loaded), int(stored), int(not_stored), damaged)
        for layer, kind, location, processes, loaded, stored, not_stored, damaged in connection.execute(
            _STORES, (run,)
        )
    ]
    return Stores(run, tuple(_with_reasons(connection, run, store) for store in found))


def _with_reasons(connection: sqlite3.Connection, run: str | None, store: Store) -> Store:
    if not store.not_stored:
        return store
    which = (run, store.layer, store.kind, store.location, MAX_REASONS)
    return replace(store, reasons=tuple(Reason(*row) for row in connection.execute(_REASONS, which)))
