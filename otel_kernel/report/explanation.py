"""Why the trips of one kernel were compiled: what `otel-kernel explain` answers."""

from __future__ import annotations

import difflib
import sqlite3
from dataclasses import dataclass
from typing import Any, Final

from otel_kernel.inputs import InputError
from otel_kernel.report.components import Kind
from otel_kernel.report.history import Record, records_of
from otel_kernel.report.kernels import Kernel
from otel_kernel.report.lookup import find_record, similar_kernels
from otel_kernel.report.why import Reason, Why, why
from otel_kernel.report.why_json import why_json

SHOWN: Final = 20
"""Trips that are explained, the newest ones."""

_LINES: Final = 20
"""Of the difference between two texts."""

_LONGEST: Final = 200_000
"""Signs of a text up to which it is compared."""

_KERNELS: Final = """
SELECT runtime, layer, kernel FROM trips JOIN sessions ON sessions.id = trips.session
WHERE kernel = ?1 AND outcome IS NOT NULL AND (?2 IS NULL OR run = ?2)
GROUP BY runtime, layer, kernel ORDER BY min(trips.started_ns)
"""

_IR: Final = """
SELECT texts.text FROM trips JOIN texts ON ir_kept = 'whole' AND texts.sha256 = ir_sha256
WHERE session = ? AND seq = ?
"""


@dataclass(frozen=True, slots=True)
class ExplainedTrip:
    """A trip, and why it was compiled."""

    kernel: Kernel
    record: Record
    why: Why | None
    """None where it was loaded, and as what it should be."""
    ir_difference: tuple[str, ...] | None
    """Lines that differ between its ir and that of the record it was compared with, where both are kept whole."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The trips of one kernel, and why they were compiled."""

    trips: tuple[ExplainedTrip, ...]
    """Those that there is something to say of, the newest first."""
    records: int
    """All records of the kernel in the run."""
    loaded: int
    """Those of them that were loaded."""


def explain_trip(connection: sqlite3.Connection, wanted: str, name: str) -> Explanation | None:
    """Explain one trip, or return None if `wanted` does not name one by session and number.

    Raises:
        InputError: there is no such trip, or it is no record.
    """
    found = find_record(connection, wanted, name)
    if found is None:
        return None
    kernel, session, seq = found
    records = records_of(connection, kernel)
    place = next(
        (place for place, each in enumerate(records) if (each.session, each.seq) == (session, seq)), None
    )
    if place is None:
        raise InputError(f"trip {wanted} in {name} has no outcome: it failed, was abandoned or never ended")
    trip = _explained(connection, kernel, records, place)
    return Explanation((trip,), 1, int(trip.record.outcome == "loaded"))


def explain_kernel(connection: sqlite3.Connection, wanted: str, run: str | None, name: str) -> Explanation:
    """Explain the newest trips of a kernel in one run, or in all with None; earlier runs count as earlier.

    Args:
        connection: a recording.
        wanted: the name of the kernel.
        run: the run, or None for all.
        name: how an error calls the recording.

    Raises:
        InputError: the run has no such kernel.
    """
    kernels = [Kernel(*row) for row in connection.execute(_KERNELS, (wanted, run))]
    if not kernels:
        if run is not None and connection.execute(_KERNELS, (wanted, None)).fetchone():
            raise InputError(
                f"no record of {wanted} in run {run} of {name}: other runs have some, see --run all"
            )
        raise InputError(f"no record of {wanted} in {name}{similar_kernels(connection, wanted)}")
    trips: list[ExplainedTrip] = []
    number = loaded = 0
    for kernel in kernels:
        records = records_of(connection, kernel)
        in_run = [place for place, record in enumerate(records) if run is None or record.run == run]
        number += len(in_run)
        loaded += sum(records[place].outcome == "loaded" for place in in_run)
        said = 0
        for place in reversed(in_run):
            trip = _explained(connection, kernel, records, place)
            if trip.why is not None:
                trips.append(trip)
                said += 1
                if said == SHOWN:
                    break
    trips.sort(key=lambda trip: trip.record.started_ns, reverse=True)
    return Explanation(tuple(trips[:SHOWN]), number, loaded)


def _explained(
    connection: sqlite3.Connection, kernel: Kernel, records: list[Record], place: int
) -> ExplainedTrip:
    record = records[place]
    reason = why(record, records[:place])
    return ExplainedTrip(kernel, record, reason, _ir_difference(connection, record, reason))


def _ir_difference(
    connection: sqlite3.Connection, record: Record, reason: Why | None
) -> tuple[str, ...] | None:
    if reason is None or reason.earlier is None:
        return None
    if Kind.SOURCE not in reason.kinds and reason.reason is not Reason.SOURCE:
        return None
    texts = [
        connection.execute(_IR, (each.session, each.seq)).fetchone() for each in (reason.earlier, record)
    ]
    if None in texts or any(len(text) > _LONGEST for (text,) in texts):
        return None
    before, after = (text.splitlines() for (text,) in texts)
    lines = difflib.unified_diff(before, after, n=0, lineterm="")
    return tuple(line for line in lines if not line.startswith(("---", "+++", "@@")))[:_LINES]


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as `schemas/explain.schema.json` has it."""
    return {
        "records": explanation.records,
        "loaded": explanation.loaded,
        "trips": [_trip_json(trip) for trip in explanation.trips],
    }


def _trip_json(trip: ExplainedTrip) -> dict[str, Any]:
    record = trip.record
    return {
        **trip.kernel._asdict(),
        **{
            name: getattr(record, name)
            for name in (
                "session",
                "seq",
                "run",
                "host",
                "started_ns",
                "duration_ns",
                "outcome",
                "identity",
                "specialization",
                "phase",
            )
        },
        "why": None if trip.why is None else why_json(trip.why),
        "ir_difference": None if trip.ir_difference is None else list(trip.ir_difference),
    }
