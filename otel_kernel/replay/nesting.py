"""Which record runs inside which: CubeCL does not say, but every record has its place on its session's clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from otel_kernel.kinds import CompilationBatchRecord, MarkRecord, Stamped, TuneRecord, wall_of
from otel_kernel.records import Trip

Replayed: TypeAlias = "Trip | Stamped"

ENCLOSING_KINDS: Final = frozenset({MarkRecord.KIND, TuneRecord.KIND, CompilationBatchRecord.KIND})
"""Kinds of records that others may run inside."""


def parents(records: Iterable[Replayed]) -> dict[int, int]:
    """Return seq of the innermost enclosing record by the seq of a record that has one.

    A record lies inside the last one of those stamped before it that had not ended when it started. Only
    compilations lie inside a batch.

    Args:
        records: those of one session.
    """
    found: dict[int, int] = {}
    stack: list[Stamped] = []
    for record in sorted(records, key=lambda each: each.seq):
        around = [
            each
            for each in stack
            if each.started_ns <= record.started_ns <= each.started_ns + wall_of(each.record)
            and (isinstance(record, Trip) or not isinstance(each.record, CompilationBatchRecord))
        ]
        if around:
            found[record.seq] = around[-1].seq
        if isinstance(record, Stamped) and isinstance(
            record.record, (MarkRecord, TuneRecord, CompilationBatchRecord)
        ):
            stack = [each for each in stack if record.started_ns <= each.started_ns + wall_of(each.record)]
            stack.append(record)
    return found
