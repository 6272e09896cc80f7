"""What the ranks of a job did with the same kernels: who compiled, who loaded, who waited, and for whom.

Two ranks have the same kernel if its layer and its `identity` are the same, or, where that is absent, its name
and its specialization. A rank has a kernel from the end of its first record of it on.

A rank waits
- while it is in no trip, and the last rank to have a kernel is still in its trip of it, and this one has it: ranks
  that meet after every step, as those of a collective do, wait for the last of them;
- while it is in a trip that in the end loads what another rank is compiling at that moment: it was given what the
  other one made.

Clocks of several hosts are taken as they are.
"""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from otel_kernel.inputs import InputError
from otel_kernel.recording.processes import ProcessId, is_alive
from otel_kernel.records import INT64_MAX
from otel_kernel.report import queries
from otel_kernel.report.intervals import Interval, length, union, without
from otel_kernel.report.summary import COUNTED, LISTED, Counts

_RANKED: Final = """
SELECT
    trips.rank, scope.session, sessions.run, sessions.host, trips.world_size, scope.layer, scope.kernel,
    coalesce(trips.identity, scope.kernel || char(0) || coalesce(trips.specialization, '')),
    trips.specialization, trips.key_id || trips.key_build_id, scope.state, scope.started_ns,
    coalesce(scope.duration_ns, 0)
FROM scope
CROSS JOIN trips USING (session, seq)  -- CROSS: in this order
JOIN sessions ON sessions.id = scope.session
WHERE trips.rank IS NOT NULL
ORDER BY trips.rank, scope.started_ns
"""

_UNRANKED: Final = f"""
SELECT count(DISTINCT session), {", ".join(f"coalesce(sum(state = '{state}'), 0)" for state in COUNTED)}
FROM scope CROSS JOIN trips USING (session, seq)
WHERE trips.rank IS NULL
"""

_UNFINISHED: Final = """
SELECT
    trips.rank, scope.layer, scope.kernel, scope.started_ns, coalesce(trips.process_pid, sessions.pid),
    sessions.pid_space, sessions.process_start
FROM scope
CROSS JOIN trips USING (session, seq)
JOIN sessions ON sessions.id = scope.session
WHERE scope.state = 'unfinished' AND trips.rank IS NOT NULL
ORDER BY scope.started_ns, scope.session, scope.seq
LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank, with all its processes."""

    rank: int
    world_size: int | None
    hosts: tuple[str, ...]
    processes: int
    counts: Counts
    spent_ns: int
    """Union of the intervals of its trips."""
    waited_ns: int
    """Time in which it waited for other ranks."""
    held_up_ns: int
    """Time in which at least one other rank waited for this one."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A kernel that more than one rank compiled."""

    layer: str
    kernel: str
    specialization: str | None
    compiled: tuple[int, ...]
    """Ranks that compiled it."""
    loaded: tuple[int, ...]
    """Ranks that loaded it, or found it under another key, and did not compile it."""
    overlapping: bool
    """Whether two of them compiled it at the same time."""
    same_key: bool | None
    """Whether all compiled it under one key, so that a store they share would serve them; None without keys."""
    duplicate_ns: int
    """Time of all compilations but the first to end."""


@dataclass(frozen=True, slots=True)
class HoldUp:
    """A kernel for which others waited."""

    rank: int
    """The rank that they waited for."""
    layer: str
    kernel: str
    specialization: str | None
    outcome: str
    """Of that rank's trip."""
    waiting: tuple[int, ...]
    """The ranks that waited."""
    held_up_ns: int
    """Time in which at least one of them waited."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A trip of a rank that has no end."""

    rank: int
    layer: str
    kernel: str
    age_ns: int
    """Time since its start."""
    alive: bool | None
    """Whether its process lives; None where that cannot be seen from here."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """What a report by rank says."""

    run: str | None
    ranks: tuple[Rank, ...]
    unranked: Counts
    """Trips of processes that tell no rank."""
    unranked_processes: int
    shared_kernels: int
    """Kernels of which more than one rank has a record."""
    duplicate_kernels: int
    """Of them those that more than one rank compiled."""
    duplicates: tuple[Duplicate, ...]
    """Those that took longest; `duplicate_kernels` is their whole number."""
    hold_ups: tuple[HoldUp, ...]
    """Those that took longest."""
    unfinished: tuple[Unfinished, ...]
    """The oldest."""

    @property
    def slowest(self) -> Rank | None:
        """The rank that held the others up longest, None if none did."""
        return max(
            (rank for rank in self.ranks if rank.held_up_ns), key=lambda rank: rank.held_up_ns, default=None
        )


class _Trip(NamedTuple):
    rank: int
    session: str
    run: str
    host: str | None
    world_size: int | None
    layer: str
    kernel: str
    instance: str
    specialization: str | None
    key: str | None
    state: str
    started_ns: int
    duration_ns: int

    @property
    def ended_ns(self) -> int:
        return self.started_ns + self.duration_ns

    @property
    def interval(self) -> Interval:
        return self.started_ns, self.ended_ns


class _Wait(NamedTuple):
    waiting: int
    trip: _Trip
    """The trip that is waited for."""
    moments: list[Interval]


def by_rank(connection: sqlite3.Connection, run: str | None, name: str) -> Ranks:
    """Compare the ranks of a run.

    Args:
        connection: a recording, in a transaction; temporary tables stay behind.
        run: the run, or None for all, of which each has ranks of its own.
        name: how an error calls the recording.

    Raises:
        InputError: a rank has trips in several runs, so that it is not one rank of one job.
    """
    queries.prepare_scope(connection, run)
    trips = [_Trip(*row) for row in connection.execute(_RANKED)]
    _check_runs(trips, name)
    shared = _shared(trips)
    busy = _busy(trips)
    waits = [wait for records in shared for wait in _waits(records, busy)]
    processes, *counts = connection.execute(_UNRANKED).fetchone()
    duplicates = [found for records in shared if (found := _duplicate(records)) is not None]
    return Ranks(
        run=run,
        ranks=_ranks(trips, busy, waits),
        unranked=Counts(*counts),
        unranked_processes=processes,
        shared_kernels=len(shared),
        duplicate_kernels=len(duplicates),
        duplicates=tuple(sorted(duplicates, key=lambda each: (-each.duplicate_ns, each.kernel))[:LISTED]),
        hold_ups=_hold_ups(waits),
        unfinished=_unfinished(connection),
    )


def _check_runs(trips: Iterable[_Trip], name: str) -> None:
    runs: dict[int, str] = {}
    for trip in trips:
        if runs.setdefault(trip.rank, trip.run) != trip.run:
            both = f"{runs[trip.rank]} and {trip.run}"
            raise InputError(f"rank {trip.rank} is in several runs of {name}, as {both}: name one with --run")


def _shared(trips: Iterable[_Trip]) -> list[list[_Trip]]:
    """Return the records of each kernel that more than one rank has, the first to end first."""
    kernels: dict[tuple[str, str], list[_Trip]] = defaultdict(list)
    for trip in trips:
        if trip.state in ("compiled", "loaded", "rekeyed"):
            kernels[trip.layer, trip.instance].append(trip)
    several = [records for records in kernels.values() if len({each.rank for each in records}) > 1]
    for records in several:
        records.sort(key=lambda trip: (trip.ended_ns, trip.rank))
    return several


def _busy(trips: Iterable[_Trip]) -> dict[int, list[Interval]]:
    intervals: dict[int, list[Interval]] = defaultdict(list)
    for trip in trips:
        intervals[trip.rank].append(trip.interval)
    return {rank: union(each) for rank, each in intervals.items()}


def _waits(records: list[_Trip], busy: dict[int, list[Interval]]) -> list[_Wait]:
    """Return who waited for whom to have one kernel."""
    first: dict[int, _Trip] = {}
    for trip in records:
        first.setdefault(trip.rank, trip)
    *before, last = first.values()  # in the order in which they ended
    waits = [
        _Wait(
            trip.rank,
            last,
            without(union([(max(trip.ended_ns, last.started_ns), last.ended_ns)]), busy[trip.rank]),
        )
        for trip in before
    ]
    compiled = [trip for trip in records if trip.state == "compiled"]
    for trip in first.values():
        if trip.state != "loaded":
            continue
        for maker in compiled:
            together = max(trip.started_ns, maker.started_ns), min(trip.ended_ns, maker.ended_ns)
            if maker.rank != trip.rank:
                waits.append(_Wait(trip.rank, maker, union([together])))
    return [wait for wait in waits if wait.moments]


def _duplicate(records: list[_Trip]) -> Duplicate | None:
    compiled: dict[int, _Trip] = {}
    for trip in records:
        if trip.state == "compiled":
            compiled.setdefault(trip.rank, trip)
    if len(compiled) < 2:
        return None
    first, *others = compiled.values()
    keys = {trip.key for trip in compiled.values()}
    intervals = [trip.interval for trip in compiled.values()]
    return Duplicate(
        layer=first.layer,
        kernel=first.kernel,
        specialization=first.specialization,
        compiled=tuple(sorted(compiled)),
        loaded=tuple(sorted({trip.rank for trip in records} - compiled.keys())),
        overlapping=length(union(intervals)) < length(intervals),
        same_key=None if None in keys else len(keys) == 1,
        duplicate_ns=min(INT64_MAX, sum(trip.duration_ns for trip in others)),
    )


def _ranks(trips: list[_Trip], busy: dict[int, list[Interval]], waits: list[_Wait]) -> tuple[Rank, ...]:
    of_rank: dict[int, list[_Trip]] = defaultdict(list)
    for trip in trips:
        of_rank[trip.rank].append(trip)
    waited: dict[int, list[Interval]] = defaultdict(list)
    held_up: dict[int, list[Interval]] = defaultdict(list)
    for wait in waits:
        waited[wait.waiting] += wait.moments
        held_up[wait.trip.rank] += wait.moments
    return tuple(
        Rank(
            rank=rank,
            world_size=max((trip.world_size for trip in own if trip.world_size is not None), default=None),
            hosts=tuple(sorted({trip.host for trip in own if trip.host is not None})),
            processes=len({trip.session for trip in own}),
            counts=Counts(*(sum(trip.state == state for trip in own) for state in COUNTED)),
            spent_ns=length(busy[rank]),
            waited_ns=length(union(waited[rank])),
            held_up_ns=length(union(held_up[rank])),
        )
        for rank, own in sorted(of_rank.items())
    )


def _hold_ups(waits: list[_Wait]) -> tuple[HoldUp, ...]:
    of_trip: dict[_Trip, list[_Wait]] = defaultdict(list)
    for wait in waits:
        of_trip[wait.trip].append(wait)
    found = [
        HoldUp(
            rank=trip.rank,
            layer=trip.layer,
            kernel=trip.kernel,
            specialization=trip.specialization,
            outcome=trip.state,
            waiting=tuple(sorted({wait.waiting for wait in each})),
            held_up_ns=length(union(moments for wait in each for moments in wait.moments)),
        )
        for trip, each in of_trip.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.held_up_ns, each.kernel))[:LISTED])


def _unfinished(connection: sqlite3.Connection) -> tuple[Unfinished, ...]:
    now = time.time_ns()
    return tuple(
        Unfinished(
            rank=rank,
            layer=layer,
            kernel=kernel,
            age_ns=max(0, now - started_ns),
            alive=is_alive(ProcessId(pid, space, start)) if pid is not None else None,
        )
        for rank, layer, kernel, started_ns, pid, space, start in connection.execute(_UNFINISHED, (LISTED,))
    )
