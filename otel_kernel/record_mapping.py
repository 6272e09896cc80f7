"""The exact way between a record of another kind than a trip and the attributes of its span.

As with trips, a span says how many attributes and characters were written on it, so that a reader never takes
for the record what a pipeline has left of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from reprlib import repr as shortened
from typing import Any, Final

from otel_kernel import mapping, semconv
from otel_kernel.kinds import (
    CompilationBatchRecord,
    MarkRecord,
    MemoryRecord,
    Placement,
    PlannedCandidate,
    SideRecord,
    Stamped,
    Trial,
    TuneRecord,
    UnknownRecord,
    kind_of,
    wall_of,
)
from otel_kernel.mapping import NotATrip, Reject, SpanView
from otel_kernel.records import AttributeValue, Session, Trip
from otel_kernel.texts import TextFiles

ROLE: Final = "record"
TRIAL_ROLE: Final = "trial"


class _UnreadableError(Exception):
    """Says why a span of ours is a reject."""


def to_attributes(stamped: Stamped) -> dict[str, AttributeValue]:
    """Return the attributes of the span of a record that is no trip."""
    record = stamped.record
    attributes: dict[str, AttributeValue] = {semconv.RECORD_WALL_NS: wall_of(record)}
    attributes.update(_own_attributes(record))
    if not isinstance(record, UnknownRecord):
        attributes.update((semconv.RECORD_FIELD + name, value) for name, value in record.other.items())
    attributes[semconv.RUNTIME] = stamped.runtime
    attributes[semconv.ROLE] = ROLE
    attributes[semconv.RECORD_KIND] = kind_of(record)
    attributes[semconv.SESSION_ID] = stamped.session.id
    attributes[semconv.SESSION_RUN] = stamped.session.run
    attributes[semconv.SESSION_SEQ] = stamped.seq
    attributes[semconv.RECORD_VERSION] = semconv.RECORD_FORMAT
    attributes[semconv.RECORD_SIZE] = len(attributes) + 2
    attributes[semconv.RECORD_LENGTH] = _length(attributes)
    return attributes


def _length(attributes: Mapping[str, object]) -> int:
    return sum(len(value) for value in attributes.values() if isinstance(value, str))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _own_attributes(record: SideRecord) -> dict[str, AttributeValue]:
    """Return the attributes that records of this kind have."""
    if isinstance(record, TuneRecord):
        return _tune_attributes(record)
    if isinstance(record, CompilationBatchRecord):
        return {semconv.BATCH_KERNELS: record.kernels, semconv.BATCH_THREADS: record.threads}
    if isinstance(record, MarkRecord):
        return {semconv.MARK_LABEL: record.label}
    if isinstance(record, MemoryRecord):
        return {semconv.MEMORY_LABEL: record.label, semconv.MEMORY_REPORT: record.report}
    return {semconv.RECORD_BODY: record.body}


def _tune_attributes(record: TuneRecord) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        semconv.TUNE_TABLE: record.table,
        semconv.TUNE_KEY: record.key,
        semconv.TUNE_CHECKSUM: record.checksum,
        semconv.TUNE_WINNER: record.winner,
        semconv.TUNE_TRIALS: _json([[each.name, each.wall] for each in record.trials]),
        semconv.TUNE_DRY_RUN: record.dry_run,
        semconv.TUNE_STORED: record.stored,
    }
    if record.short_circuit is not None:
        attributes[semconv.TUNE_SHORT_CIRCUIT] = record.short_circuit
    if record.plan:
        attributes[semconv.TUNE_PLAN] = _json(
            [
                [each.name, each.index, each.batch, [asdict(group) for group in each.groups]]
                for each in record.plan
            ]
        )
    return attributes


def read_any(span: SpanView, texts: TextFiles | None = None) -> Trip | Stamped | NotATrip | Reject:
    """Return the record that a span stands for, a trip or one of another kind.

    Args:
        span: a finished span.
        texts: where to look for texts that the span does not carry whole.
    """
    if span.attributes.get(semconv.ROLE) == ROLE:
        return read_record(span)
    return mapping.read_span(span, texts)


def read_record(span: SpanView) -> Stamped | NotATrip | Reject:
    """Return the record of another kind than a trip that a span stands for.

    Args:
        span: a finished span.

    Returns:
        The record; `NotATrip` for any other span; a `Reject` for one of which a field was lost, cut or altered,
        or that a newer version wrote.
    """
    if span.attributes.get(semconv.ROLE) != ROLE:
        return NotATrip("the span is no record of another kind than a trip")
    try:
        return _read(span)
    except (_UnreadableError, ValueError, TypeError) as error:
        return Reject(str(error), span.trace_id, span.span_id)


def _read(span: SpanView) -> Stamped:
    version = span.attributes.get(semconv.RECORD_VERSION)
    if type(version) is int and not 1 <= version <= semconv.RECORD_FORMAT:
        raise _UnreadableError(
            f"{semconv.RECORD_VERSION} is {version}, and this otel-kernel reads 1 to {semconv.RECORD_FORMAT}: update it"
        )
    ours: dict[str, Any] = {
        name: value for name, value in span.attributes.items() if name.startswith(semconv.NAMESPACE)
    }
    _check_complete(ours)
    other = {
        name.removeprefix(semconv.RECORD_FIELD): value
        for name, value in ours.items()
        if name.startswith(semconv.RECORD_FIELD)
    }
    return Stamped(
        session=Session(id=_take(ours, semconv.SESSION_ID), run=_take(ours, semconv.SESSION_RUN)),
        seq=_take(ours, semconv.SESSION_SEQ),
        runtime=_take(ours, semconv.RUNTIME),
        started_ns=span.start_ns,
        record=_record(ours, other),
    )


def _check_complete(ours: Mapping[str, Any]) -> None:
    size, length = (_take(ours, name) for name in (semconv.RECORD_SIZE, semconv.RECORD_LENGTH))
    if type(size) is not int or type(length) is not int:
        raise _UnreadableError(
            f"{semconv.RECORD_SIZE} and {semconv.RECORD_LENGTH} must be ints, got {shortened(size)} and {shortened(length)}"
        )
    if size != len(ours):
        what = "lost" if size > len(ours) else "added"
        raise _UnreadableError(f"{what}: of {size} attributes there are {len(ours)}")
    found = _length(ours)
    if found != length:
        what = "cut" if found < length else "altered"
        longest = max(
            (name for name in ours if isinstance(ours[name], str)), key=lambda name: len(ours[name])
        )
        raise _UnreadableError(f"{what}: {found} of {length} characters are there; the longest is {longest}")
    for name, value in ours.items():
        definition = semconv.RECORD_ATTRIBUTES.get(name) or semconv.definition(name)
        if definition is not None and type(value) is not definition.type:
            raise _UnreadableError(f"{name} must be {definition.type.__name__}, got {shortened(value)}")


def _take(ours: Mapping[str, Any], name: str) -> Any:
    if name not in ours:
        raise _UnreadableError(f"lost: {name}")
    return ours[name]


def _record(ours: Mapping[str, Any], other: Mapping[str, str]) -> SideRecord:
    kind, wall = _take(ours, semconv.RECORD_KIND), _take(ours, semconv.RECORD_WALL_NS)
    if kind == TuneRecord.KIND:
        return _tune(ours, wall, other)
    if kind == CompilationBatchRecord.KIND:
        return CompilationBatchRecord(
            kernels=_take(ours, semconv.BATCH_KERNELS),
            threads=_take(ours, semconv.BATCH_THREADS),
            wall=wall,
            other=other,
        )
    if kind == MarkRecord.KIND:
        return MarkRecord(label=_take(ours, semconv.MARK_LABEL), wall=wall, other=other)
    if kind == MemoryRecord.KIND:
        return MemoryRecord(
            label=_take(ours, semconv.MEMORY_LABEL), report=_take(ours, semconv.MEMORY_REPORT), other=other
        )
    return UnknownRecord(kind=kind, body=_take(ours, semconv.RECORD_BODY))


def _tune(ours: Mapping[str, Any], wall: int, other: Mapping[str, str]) -> TuneRecord:
    trials = json.loads(_take(ours, semconv.TUNE_TRIALS))
    plan = json.loads(ours.get(semconv.TUNE_PLAN, "[]"))
    return TuneRecord(
        table=_take(ours, semconv.TUNE_TABLE),
        key=_take(ours, semconv.TUNE_KEY),
        checksum=_take(ours, semconv.TUNE_CHECKSUM),
        winner=_take(ours, semconv.TUNE_WINNER),
        trials=tuple(Trial(name, ns) for name, ns in trials),
        short_circuit=ours.get(semconv.TUNE_SHORT_CIRCUIT),
        wall=wall,
        dry_run=_take(ours, semconv.TUNE_DRY_RUN),
        stored=_take(ours, semconv.TUNE_STORED),
        plan=tuple(
            PlannedCandidate(name, index, batch, tuple(Placement(**group) for group in groups))
            for name, index, batch, groups in plan
        ),
        other=other,
    )
