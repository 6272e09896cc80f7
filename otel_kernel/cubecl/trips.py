"""The records of an environment as ours: a compilation as a trip, the others stamped with session and time."""

from __future__ import annotations

from typing import Final

from otel_kernel import semconv
from otel_kernel.cubecl.decoding import Compilation, CubeclSession, Row
from otel_kernel.kinds import Stamped
from otel_kernel.records import AttributeValue, Session, Trip, digest128

RUNTIME: Final = "cubecl"
LAYER: Final = "cubecl"
STORE_KIND: Final = "cubecl.environment"


def session_of(number: int) -> Session:
    """Return our session of a session's number in CubeCL.

    Its id ends in the 16 hex digits of that number and starts with 16 of a digest of it, so that ids differ at
    their start. CubeCL knows no runs, and one process has several sessions if it switches environments: each
    is a run.
    """
    if not 0 <= number < 2**64:
        raise ValueError(f"a session's number must be in 0..2**64-1, got {number}")
    digits = f"{digest128(f'cubecl session {number}') >> 64:016x}{number:016x}"
    return Session(id=digits, run=digits)


def number_of(session_id: str) -> int | None:
    """Return the number in CubeCL of a session that came from there, or None for the id of one of ours."""
    number = int(session_id[16:], 16)
    return number if session_of(number).id == session_id else None


def start_of(number: int, session: CubeclSession | None) -> int:
    """Return when a session started, ns since the Unix epoch.

    Its number is that, to the ns; if it is not, what it says in ms counts.
    """
    if session is None or number // 10**6 == session.started_unix_ms:
        return number
    return session.started_unix_ms * 10**6


def to_trip(row: Row, compilation: Compilation, session: CubeclSession | None) -> Trip:
    """Return the trip that a row with the record of a compilation stands for.

    Args:
        row: the row.
        compilation: its record.
        session: the session it belongs to, or None where that is not listed any more.

    Raises:
        ValueError: the row holds what no trip may.
    """
    record = compilation.record
    attributes: dict[str, AttributeValue] = {
        semconv.OUTCOME_FROM: "runtime",
        semconv.DEVICE_LOADED: True,
        semconv.STORE_KIND: STORE_KIND,
    }
    if session is not None:
        attributes[semconv.BUILD] = f"cubecl {session.cubecl_version}"
        attributes[semconv.PROCESS_PID] = session.process
    for name, value in compilation.other.items():
        attributes[semconv.RECORD_FIELD + name] = value
    return Trip(
        session=session_of(row.session),
        seq=row.seq,
        runtime=RUNTIME,
        layer=LAYER,
        kernel=record.kernel,
        started_ns=start_of(row.session, session) + row.offset,
        duration_ns=record.duration,
        outcome=record.outcome,
        key=record.key,
        ir=record.ir,
        source=record.source,
        attributes=attributes,
    )


def to_ours(row: Row, session: CubeclSession | None) -> Trip | Stamped:
    """Return the trip or the stamped record that a row stands for, or raise `ValueError`."""
    if isinstance(row.record, Compilation):
        return to_trip(row, row.record, session)
    return Stamped(
        session=session_of(row.session),
        seq=row.seq,
        runtime=RUNTIME,
        started_ns=start_of(row.session, session) + row.offset,
        record=row.record,
    )
