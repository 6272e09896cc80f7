"""One side of a comparison: the records of a run by the instance of a kernel that they are of.

An instance is one code, specialization and target of a kernel, which the attribute `identity` names. Where
that is absent, kernel and specialization stand for it.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final

from otel_kernel.report import queries
from otel_kernel.report.kernels import Instance, Kernel
from otel_kernel.report.summary import COUNTED, Counts

_OWN_NS: Final = "max(0, scope.duration_ns - coalesce(children.duration_ns, 0))"

_COUNTS: Final = f"SELECT {', '.join(f'''sum(state = '{state}')''' for state in COUNTED)} FROM scope"

_INSTANCES: Final = f"""
SELECT
    runtime, layer, kernel, max(scope.internal), trips.identity, trips.specialization,
    sum(state = 'compiled'), sum(state = 'loaded'), sum(state = 'rekeyed'),
    CAST(total({_OWN_NS}) AS INTEGER)
FROM scope
CROSS JOIN trips USING (session, seq, runtime, layer, kernel)  -- CROSS: in this order
LEFT JOIN children USING (session, seq)
WHERE state IN ('compiled', 'loaded', 'rekeyed')
GROUP BY runtime, layer, kernel, trips.identity, trips.specialization
"""

_FAILED: Final = """
SELECT runtime, layer, kernel, count(*), max(trips.error_type)
FROM scope CROSS JOIN trips USING (session, seq, runtime, layer, kernel)
WHERE state = 'failed'
GROUP BY runtime, layer, kernel
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What the records of an instance come to."""

    compiled: int = 0
    loaded: int = 0
    rekeyed: int = 0
    own_ns: int = 0
    """Time of its trips less the time of their child trips of the same layer."""

    @property
    def trips(self) -> int:
        """All records."""
        return self.compiled + self.loaded + self.rekeyed

    @property
    def own_ns_per_trip(self) -> int:
        """Own time of a trip, on average."""
        return round(self.own_ns / self.trips)

    @property
    def outcomes(self) -> tuple[bool, bool, bool]:
        """Whether any was compiled, loaded and rekeyed."""
        return self.compiled > 0, self.loaded > 0, self.rekeyed > 0

    @property
    def is_loaded(self) -> bool:
        """Whether all were loaded."""
        return self.loaded == self.trips

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.compiled + other.compiled,
            self.loaded + other.loaded,
            self.rekeyed + other.rekeyed,
            self.own_ns + other.own_ns,
        )


@dataclass(frozen=True, slots=True)
class Failed:
    """Failed trips of a kernel."""

    trips: int
    error_type: str
    """Of one of them."""


@dataclass(frozen=True, slots=True)
class Side:
    """What one run, or all runs of an INPUT, came to."""

    connection: sqlite3.Connection
    name: str
    run: str | None
    started_ns: int | None
    processes: int
    counts: Counts
    spent_ns: int
    instances: dict[Kernel, dict[Instance, Cost]]
    internal: frozenset[Kernel]
    """Kernels that are functions of a runtime's library."""
    failed: dict[Kernel, Failed]


def read_side(connection: sqlite3.Connection, name: str, run: str | None) -> Side:
    """Return what a run came to.

    Args:
        connection: a recording, in a transaction; it must stay open while the side is used.
        name: of the INPUT.
        run: the run, or None for all.
    """
    queries.prepare_own_times(connection, run)
    _, processes, started_ns = connection.execute(queries.EXTENT).fetchone()
    instances: dict[Kernel, dict[Instance, Cost]] = {}
    internal: set[Kernel] = set()
    for (
        *names,
        is_internal,
        identity,
        specialization,
        compiled,
        loaded,
        rekeyed,
        own_ns,
    ) in connection.execute(_INSTANCES):
        kernel = Kernel(*names)
        cost = Cost(compiled, loaded, rekeyed, own_ns)
        instances.setdefault(kernel, {})[Instance(identity, specialization)] = cost
        if is_internal:
            internal.add(kernel)
    side = Side(
        connection=connection,
        name=name,
        run=run,
        started_ns=started_ns,
        processes=processes,
        counts=Counts(*(number or 0 for number in connection.execute(_COUNTS).fetchone())),
        spent_ns=connection.execute(queries.SPENT).fetchone()[0],
        instances=instances,
        internal=frozenset(internal),
        failed={
            Kernel(*names): Failed(trips, error_type)
            for *names, trips, error_type in connection.execute(_FAILED)
        },
    )
    queries.drop_own_times(connection)
    return side
