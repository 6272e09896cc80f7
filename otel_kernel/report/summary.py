"""What a recording, or one run in it, comes to."""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Final

from otel_kernel.phases import SERVING
from otel_kernel.recording.processes import ProcessId, is_alive
from otel_kernel.report import queries
from otel_kernel.report.explained import Explained, explained
from otel_kernel.report.late import LateKernel, late_kernels

LISTED: Final = 20
"""Failed, unfinished and explained trips that a summary names, the newest first."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Trips by how they ended."""

    compiled: int = 0
    loaded: int = 0
    rekeyed: int = 0
    failed: int = 0
    abandoned: int = 0
    unfinished: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) + getattr(other, name) for name in COUNTED))

    @property
    def trips(self) -> int:
        """All trips."""
        return sum(getattr(self, name) for name in COUNTED)

    @property
    def loaded_share(self) -> float | None:
        """Share of the records that were loaded, 0 to 1; None without records."""
        records = self.compiled + self.loaded + self.rekeyed
        return self.loaded / records if records else None


COUNTED: Final = tuple(field.name for field in fields(Counts))


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One kernel in one layer."""

    kernel: str
    counts: Counts
    own_ns: int
    """Time of its trips less the time of their child trips of the same layer."""


@dataclass(frozen=True, slots=True)
class InternalLine:
    """All of a runtime's own functions in one layer, folded."""

    kernels: int
    counts: Counts
    own_ns: int


@dataclass(frozen=True, slots=True)
class Saved:
    """Time that the store saved: of each outermost loaded trip, what its compilation took longer."""

    trips: int = 0
    """Loaded trips inside no other loaded one."""
    unknown: int = 0
    """Those of which no compilation under the same key is in the input, and whose artifact remembers none."""
    remembered: int = 0
    """Those of which the artifact's own memory tells what its compilation took."""
    ns: int = 0
    """Of the others; one that took longer to load than to compile counts as nothing saved."""

    @property
    def unknown_share(self) -> float | None:
        """Share of the loaded trips for which it is unknown, 0 to 1; None without any."""
        return self.unknown / self.trips if self.trips else None

    def __add__(self, other: Saved) -> Saved:
        return Saved(
            self.trips + other.trips,
            self.unknown + other.unknown,
            self.remembered + other.remembered,
            self.ns + other.ns,
        )


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of a runtime; layers hold the same time, so they are never summed up."""

    runtime: str
    layer: str
    counts: Counts
    spent_ns: int
    """Union of the intervals of its trips in each process, summed over processes."""
    saved: Saved
    kernels: tuple[KernelLine, ...]
    """Those of the program, by own time."""
    internal: InternalLine | None


@dataclass(frozen=True, slots=True)
class FailedTrip:
    """A trip that an exception ended."""

    session: str
    seq: int
    pid: int | None
    layer: str
    kernel: str
    started_ns: int
    error_type: str
    message: str | None


@dataclass(frozen=True, slots=True)
class UnfinishedTrip:
    """A trip whose process was killed, or still runs."""

    session: str
    seq: int
    pid: int | None
    layer: str
    kernel: str
    started_ns: int
    age_ns: int
    """Time since its start."""
    alive: bool | None
    """Whether its process lives; None where that cannot be seen from here."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a report says."""

    run: str | None
    """The run that it is about; None for all."""
    runs: int
    processes: int
    started_ns: int | None
    """Start of the first trip, None without trips."""
    counts: Counts
    spent_ns: int
    """Union of the intervals of all trips in each process, summed over processes."""
    saved: Saved
    layers: tuple[Layer, ...]
    serving: tuple[LateKernel, ...]
    """What was compiled while the program served."""
    failed: tuple[FailedTrip, ...]
    """The newest; `counts.failed` is their whole number."""
    unfinished: tuple[UnfinishedTrip, ...]
    """The newest; `counts.unfinished` is their whole number."""
    explained: tuple[Explained, ...]
    """Trips that were compiled although an earlier trip had the kernel, or loaded as something else."""


def summarize(connection: sqlite3.Connection, run: str | None = None) -> Summary:
    """Summarize the trips of a run; trips of earlier runs only tell what a compilation took and its key.

    Args:
        connection: a recording, in a transaction; temporary tables stay behind.
        run: the run, or None for all.
    """
    queries.prepare(connection, run)
    layers = _layers(connection)
    runs, processes, started_ns = connection.execute(queries.EXTENT).fetchone()
    return Summary(
        run=run,
        runs=runs,
        processes=processes,
        started_ns=started_ns,
        counts=sum((layer.counts for layer in layers), Counts()),
        spent_ns=_spent_ns(connection, layers),
        saved=sum((layer.saved for layer in layers), Saved()),
        layers=layers,
        serving=late_kernels(connection, SERVING),
        failed=tuple(FailedTrip(*row) for row in connection.execute(queries.FAILED, (LISTED,))),
        unfinished=_unfinished(connection),
        explained=explained(connection, LISTED),
    )


def _layers(connection: sqlite3.Connection) -> tuple[Layer, ...]:
    spent: dict[tuple[str, str], int] = {
        (runtime, layer): ns for runtime, layer, ns in connection.execute(queries.LAYERS_SPENT)
    }
    saved: dict[tuple[str, str], Saved] = defaultdict(Saved)
    for runtime, layer, *numbers in connection.execute(queries.SAVED):
        saved[runtime, layer] = Saved(*numbers)
    layers: list[Layer] = []
    rows = connection.execute(queries.KERNELS)
    for (runtime, layer), group in groupby(rows, key=lambda row: (row[0], row[1])):
        kernels: list[KernelLine] = []
        internal: list[KernelLine] = []
        for _, _, is_internal, kernel, own_ns, *counts in group:
            (internal if is_internal else kernels).append(KernelLine(kernel, Counts(*counts), own_ns))
        layers.append(
            Layer(
                runtime=runtime,
                layer=layer,
                counts=sum((line.counts for line in (*kernels, *internal)), Counts()),
                spent_ns=spent.get((runtime, layer), 0),
                saved=saved[runtime, layer],
                kernels=tuple(kernels),
                internal=_folded(internal) if internal else None,
            )
        )
    return tuple(layers)


def _spent_ns(connection: sqlite3.Connection, layers: tuple[Layer, ...]) -> int:
    if len(layers) == 1:
        return layers[0].spent_ns  # the union is the same, and finding it twice takes its time
    ns: int = connection.execute(queries.SPENT).fetchone()[0]
    return ns


def _folded(lines: list[KernelLine]) -> InternalLine:
    return InternalLine(
        kernels=len(lines),
        counts=sum((line.counts for line in lines), Counts()),
        own_ns=sum(line.own_ns for line in lines),
    )


def _unfinished(connection: sqlite3.Connection) -> tuple[UnfinishedTrip, ...]:
    now = time.time_ns()
    trips: list[UnfinishedTrip] = []
    for *row, started_ns, space, start in connection.execute(queries.UNFINISHED, (LISTED,)):
        session, seq, pid, layer, kernel = row
        alive = is_alive(ProcessId(pid, space, start)) if pid is not None else None
        age_ns = max(0, now - started_ns)
        trips.append(UnfinishedTrip(session, seq, pid, layer, kernel, started_ns, age_ns, alive))
    return tuple(trips)
