"""What differs between two runs: kernels that came, went, changed in outcome or in time, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from otel_kernel.report.history import Record, records_of
from otel_kernel.report.instances import Cost, Failed, Side
from otel_kernel.report.kernels import Instance, Kernel
from otel_kernel.report.why import Why, why


class Change(str, Enum):
    """How an instance of a kernel differs; of several the first one counts."""

    NEW = "new"
    GONE = "gone"
    OUTCOME = "outcome"
    """It came out in other ways: loaded before, compiled now."""
    SLOWER = "slower"
    FASTER = "faster"
    """By own time of a trip, on average."""
    TRIPS = "trips"
    """More or fewer trips, and so another own time in all."""


class Threshold(NamedTuple):
    """From which difference on a time counts as another one; both must be reached."""

    ns: int
    share: float
    """Of the time before, 0.25 for a quarter."""

    def is_reached(self, before: int, after: int) -> bool:
        """Whether the second time differs from the first."""
        difference = abs(after - before)
        return difference >= max(1, self.ns) and difference >= self.share * before


@dataclass(frozen=True, slots=True)
class Entry:
    """An instance of a kernel that differs, or that was compiled in both runs."""

    kernel: Kernel
    instance: Instance
    """As it was after, or before if it is gone."""
    internal: bool
    change: Change | None
    before: Cost | None
    after: Cost | None
    why: Why | None
    """Why it was compiled again, where it was."""

    @property
    def moved_ns(self) -> int:
        """Own time after less own time before."""
        return (self.after.own_ns if self.after else 0) - (self.before.own_ns if self.before else 0)

    @property
    def is_compiled_again(self) -> bool:
        """Whether it was compiled in both runs."""
        return bool(self.before and self.after and self.before.compiled and self.after.compiled)


@dataclass(frozen=True, slots=True)
class Failure:
    """A kernel that fails in one of the runs only."""

    kernel: Kernel
    is_new: bool
    """Whether that is the run after."""
    failed: Failed


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two runs."""

    before: Side
    after: Side
    threshold: Threshold
    entries: tuple[Entry, ...]
    """Those whose own time differs most first."""
    failures: tuple[Failure, ...]

    @property
    def is_none(self) -> bool:
        """Whether nothing differs."""
        return not self.failures and all(entry.change is None for entry in self.entries)


@dataclass(slots=True)
class _Pair:
    """An instance, with what it is called on each side."""

    before: dict[Instance, Cost] = field(default_factory=dict[Instance, Cost])
    after: dict[Instance, Cost] = field(default_factory=dict[Instance, Cost])


def compare(before: Side, after: Side, threshold: Threshold) -> Difference:
    """Return what differs between two sides, whose connections are open."""
    entries = [
        entry
        for kernel in before.instances.keys() | after.instances.keys()
        for entry in _entries(kernel, before, after, threshold)
    ]
    entries.sort(key=lambda entry: (-abs(entry.moved_ns), entry.kernel, str(entry.instance)))
    return Difference(before, after, threshold, tuple(entries), tuple(_failures(before.failed, after.failed)))


def _entries(kernel: Kernel, before: Side, after: Side, threshold: Threshold) -> Iterator[Entry]:
    pairs = _pairs(before.instances.get(kernel, {}), after.instances.get(kernel, {}))
    # Looked at one by one only where there is something to explain.
    explained = any(pair.before and any(not cost.is_loaded for cost in pair.after.values()) for pair in pairs)
    before_records = _records(before, kernel) if explained else {}
    after_records = _records(after, kernel) if explained else {}
    for pair in pairs:
        cost_before, cost_after = _sum(pair.before), _sum(pair.after)
        is_in_both = cost_before is not None and cost_after is not None
        entry = Entry(
            kernel=kernel,
            instance=next(iter(pair.after or pair.before)),
            internal=kernel in before.internal or kernel in after.internal,
            change=_change(cost_before, cost_after, threshold),
            before=cost_before,
            after=cost_after,
            why=_why(_by_start(before_records, pair.before), _by_start(after_records, pair.after))
            if is_in_both
            else None,
        )
        if entry.change is not None or entry.is_compiled_again:
            yield entry


def _records(side: Side, kernel: Kernel) -> dict[Instance, list[Record]]:
    records: dict[Instance, list[Record]] = defaultdict(list)
    for record in records_of(side.connection, kernel, side.run):
        records[record.instance].append(record)
    return records


def _pairs(before: Mapping[Instance, Cost], after: Mapping[Instance, Cost]) -> Collection[_Pair]:
    """Return the instances of a kernel: matched by identity, and what is left by specialization."""
    shared = {each.identity for each in before} & {each.identity for each in after} - {None}
    pairs: dict[tuple[str, str | None], _Pair] = defaultdict(_Pair)

    def matched(instance: Instance) -> _Pair:
        if instance.identity in shared:
            return pairs["identity", instance.identity]
        return pairs["specialization", instance.specialization]

    for instance, cost in before.items():
        matched(instance).before[instance] = cost
    for instance, cost in after.items():
        matched(instance).after[instance] = cost
    return pairs.values()


def _sum(costs: Mapping[Instance, Cost]) -> Cost | None:
    return sum(costs.values(), Cost()) if costs else None


def _by_start(records: Mapping[Instance, list[Record]], instances: Iterable[Instance]) -> list[Record]:
    return sorted(
        (record for instance in instances for record in records.get(instance, ())),
        key=lambda record: record.started_ns,
    )


def _why(before: Sequence[Record], after: Iterable[Record]) -> Why | None:
    """Return why the first record after that was not loaded was not, or None if all were loaded."""
    compiled = next((record for record in after if record.outcome != "loaded"), None)
    return None if compiled is None else why(compiled, before)


def _change(before: Cost | None, after: Cost | None, threshold: Threshold) -> Change | None:
    if before is None:
        return Change.NEW
    if after is None:
        return Change.GONE
    if before.outcomes != after.outcomes:
        return Change.OUTCOME
    if threshold.is_reached(before.own_ns_per_trip, after.own_ns_per_trip):
        return Change.SLOWER if after.own_ns_per_trip > before.own_ns_per_trip else Change.FASTER
    if before.trips != after.trips and threshold.is_reached(before.own_ns, after.own_ns):
        return Change.TRIPS
    return None


def _failures(before: Mapping[Kernel, Failed], after: Mapping[Kernel, Failed]) -> Iterator[Failure]:
    for kernel in sorted(before.keys() ^ after.keys()):
        is_new = kernel in after
        yield Failure(kernel, is_new, (after if is_new else before)[kernel])
