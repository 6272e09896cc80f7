"""The records that stand beside those of compilations, as CubeCL defines them: tunes, batches, marks, memory.

Their fields are those of CubeCL. Where a field may hold anything, such as a tuner's key, it is kept as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import ClassVar, TypeAlias

from otel_kernel.records import INT64_MAX, Session, is_int, is_text, require


def _nothing() -> Mapping[str, str]:
    return {}


def check_json(owner: str, name: str, value: object) -> None:
    """Raise `ValueError` naming the field unless `value` is valid Unicode that parses as JSON."""
    ok = is_text(value) and isinstance(value, str)
    if ok:
        try:
            json.loads(str(value))
        except ValueError:
            ok = False
    require(ok, owner, name, "JSON", value)


def _check_count(owner: str, name: str, value: object) -> None:
    require(is_int(value, 0, INT64_MAX), owner, name, "an int in 0..2**63-1", value)


def _check_text(owner: str, name: str, value: object) -> None:
    require(is_text(value), owner, name, "a valid Unicode str", value)


class _OfAKind:
    __slots__ = ()

    KIND: ClassVar[str]

    @classmethod
    def namespace(cls) -> str:
        """Return the namespace of these records in a CubeCL environment."""
        return f"records/v1/{cls.KIND}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate's run within a tune."""

    name: str
    wall: int
    """Compiling and measuring it, ns."""

    def __post_init__(self) -> None:
        _check_text("Trial", "name", self.name)
        _check_count("Trial", "wall", self.wall)


@dataclass(frozen=True, slots=True)
class Placement:
    """A candidate's place in one of its groups."""

    group: str
    ordered: bool
    group_priority: int
    priority: int
    """Negative: left out for this key."""

    def __post_init__(self) -> None:
        _check_text("Placement", "group", self.group)
        require(type(self.ordered) is bool, "Placement", "ordered", "a bool", self.ordered)
        for name in ("group_priority", "priority"):
            value = getattr(self, name)
            require(is_int(value, -INT64_MAX, INT64_MAX), "Placement", name, "an int of 64 bits", value)


@dataclass(frozen=True, slots=True)
class PlannedCandidate:
    """One candidate's place in the plan of a tune."""

    name: str
    index: int
    """The one that a tune's `winner` names."""
    batch: int | None
    """In which round it is released; None where every group leaves it out."""
    groups: tuple[Placement, ...]

    def __post_init__(self) -> None:
        _check_text("PlannedCandidate", "name", self.name)
        _check_count("PlannedCandidate", "index", self.index)
        if self.batch is not None:
            _check_count("PlannedCandidate", "batch", self.batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneRecord(_OfAKind):
    """How one key of a tuner was decided."""

    KIND: ClassVar[str] = "autotune"

    table: str
    """The namespace that the answer is stored in."""
    key: str
    """What was tuned for, JSON."""
    checksum: str
    """Of the list of candidates."""
    winner: int
    """Index of the candidate that the key runs from now on."""
    trials: tuple[Trial, ...]
    """The candidates that ran, in that order."""
    short_circuit: str | None
    """The candidate that met the time limit and so ended the tune."""
    wall: int
    """From the miss to the answer, ns."""
    dry_run: bool
    """Whether launches were discarded: they compile and do not run."""
    stored: bool
    """Whether the table took the answer."""
    plan: tuple[PlannedCandidate, ...] = ()
    """All candidates in the order in which they are released."""
    other: Mapping[str, str] = field(default_factory=_nothing)
    """Fields that this version does not know, as JSON, by name."""

    def __post_init__(self) -> None:
        owner = type(self).__name__
        _check_text(owner, "table", self.table)
        check_json(owner, "key", self.key)
        _check_text(owner, "checksum", self.checksum)
        _check_count(owner, "winner", self.winner)
        if self.short_circuit is not None:
            _check_text(owner, "short_circuit", self.short_circuit)
        _check_count(owner, "wall", self.wall)
        for name in ("dry_run", "stored"):
            require(type(getattr(self, name)) is bool, owner, name, "a bool", getattr(self, name))
        _check_other(owner, self.other)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilationBatchRecord(_OfAKind):
    """Kernels that were obtained together; a lone one is a batch of one."""

    KIND: ClassVar[str] = "compilation_batch"

    kernels: int
    """How many were asked for, failures included."""
    threads: int
    """How many threads compiled at once."""
    wall: int
    """From the start to the last kernel loaded, ns."""
    other: Mapping[str, str] = field(default_factory=_nothing)
    """Fields that this version does not know, as JSON, by name."""

    def __post_init__(self) -> None:
        for name in ("kernels", "threads", "wall"):
            _check_count(type(self).__name__, name, getattr(self, name))
        _check_other(type(self).__name__, self.other)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRecord(_OfAKind):
    """A phase of the program's work that it named itself."""

    KIND: ClassVar[str] = "marks"

    label: str
    wall: int
    """How long it lasted, ns."""
    other: Mapping[str, str] = field(default_factory=_nothing)
    """Fields that this version does not know, as JSON, by name."""

    def __post_init__(self) -> None:
        _check_text(type(self).__name__, "label", self.label)
        _check_count(type(self).__name__, "wall", self.wall)
        _check_other(type(self).__name__, self.other)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord(_OfAKind):
    """The device's memory at a moment that the program named."""

    KIND: ClassVar[str] = "memory"

    label: str
    report: str
    """Pools by stream, JSON."""
    other: Mapping[str, str] = field(default_factory=_nothing)
    """Fields that this version does not know, as JSON, by name."""

    def __post_init__(self) -> None:
        _check_text(type(self).__name__, "label", self.label)
        check_json(type(self).__name__, "report", self.report)
        _check_other(type(self).__name__, self.other)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownRecord:
    """A record of a kind that this version does not know."""

    kind: str
    body: str
    """All of it, JSON."""

    def __post_init__(self) -> None:
        ok = is_text(self.kind) and self.kind != ""
        require(ok, type(self).__name__, "kind", "a non-empty str", self.kind)
        check_json(type(self).__name__, "body", self.body)


def _check_other(owner: str, other: Mapping[str, str]) -> None:
    for name, value in other.items():
        _check_text(owner, "other", name)
        check_json(owner, f"other[{name!r}]", value)


SideRecord: TypeAlias = "TuneRecord | CompilationBatchRecord | MarkRecord | MemoryRecord | UnknownRecord"


def kind_of(record: SideRecord) -> str:
    """Return the kind that a record is stored under."""
    return record.kind if isinstance(record, UnknownRecord) else record.KIND


def wall_of(record: SideRecord) -> int:
    """Return how long it took in ns, 0 for a moment."""
    return record.wall if isinstance(record, (TuneRecord, CompilationBatchRecord, MarkRecord)) else 0


def title_of(record: SideRecord) -> str:
    """Return what people may call a record, and its span."""
    if isinstance(record, TuneRecord):
        return f"tune {record.table.rpartition('/')[2]}"
    if isinstance(record, CompilationBatchRecord):
        return "compile batch"
    if isinstance(record, MarkRecord):
        return record.label or "mark"
    if isinstance(record, MemoryRecord):
        return f"memory {record.label}"
    return record.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamped:
    """A record beside trips, with its place among all records of its session."""

    session: Session
    seq: int
    """Counts the records of a session, trips included, from 0."""
    runtime: str
    started_ns: int
    """Wall clock, ns since the Unix epoch."""
    record: SideRecord

    def __post_init__(self) -> None:
        owner = type(self).__name__
        require(isinstance(self.session, Session), owner, "session", "a Session", self.session)
        _check_count(owner, "seq", self.seq)
        require(
            is_text(self.runtime) and self.runtime != "", owner, "runtime", "a non-empty str", self.runtime
        )
        _check_count(owner, "started_ns", self.started_ns)

    def to_json(self) -> dict[str, object]:
        """Return it as one JSON object."""
        return {
            "kind": kind_of(self.record),
            "runtime": self.runtime,
            "session": self.session.id,
            "run": self.session.run,
            "seq": self.seq,
            "started_ns": self.started_ns,
            "record": _to_json(self.record),
        }


def _to_json(record: SideRecord) -> object:
    if isinstance(record, UnknownRecord):
        return json.loads(record.body)
    fields = asdict(record)
    for name in ("key", "report"):
        if name in fields:
            fields[name] = json.loads(fields[name])
    other: dict[str, str] = fields.pop("other")
    return {**fields, **{name: json.loads(value) for name, value in other.items()}}
