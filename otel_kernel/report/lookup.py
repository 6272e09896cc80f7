"""Finds one trip in a recording."""

from __future__ import annotations

import re
import sqlite3
from difflib import get_close_matches
from typing import Final

from otel_kernel.inputs import InputError
from otel_kernel.recording import schema
from otel_kernel.recording.errors import RecordingError
from otel_kernel.recording.rows import from_rows
from otel_kernel.records import Session, Trip
from otel_kernel.report.kernels import Kernel

_REFERENCE: Final = re.compile(r"([0-9a-f]{1,32}):([0-9]{1,18})")

_NAMED: Final = 5
"""Sessions or kernels that an error names."""

_BY_REFERENCE: Final = (
    "SELECT session, seq FROM trips WHERE session GLOB ? || '*' AND seq = ? ORDER BY session"
)
_NEWEST_OF_KERNEL: Final = (
    "SELECT session, seq FROM trips WHERE kernel = ? ORDER BY started_ns DESC, session, seq LIMIT 1"
)
_TRIP: Final = f"""
    SELECT
        sessions.run, ir.text, source.text,
        {", ".join(f"trips.{column}" for column in schema.TRIP_COLUMNS)}
    FROM trips
    JOIN sessions ON sessions.id = trips.session
    LEFT JOIN texts AS ir ON trips.ir_kept = 'whole' AND ir.sha256 = trips.ir_sha256
    LEFT JOIN texts AS source ON trips.source_kept = 'whole' AND source.sha256 = trips.source_sha256
    WHERE trips.session = ? AND trips.seq = ?
"""


def find_trip(connection: sqlite3.Connection, wanted: str, name: str) -> Trip:
    """Return one trip, however it ended.

    Args:
        connection: a recording.
        wanted: the start of a session's id and the number of a trip, `0f0e:12`, or the name of a kernel for
            its newest trip.
        name: how an error calls the recording.

    Raises:
        InputError: there is no such trip, or several sessions start like this.
        RecordingError: its rows are damaged.
    """
    identity = (
        _by_reference(connection, wanted, name) or connection.execute(_NEWEST_OF_KERNEL, (wanted,)).fetchone()
    )
    if identity is None:
        raise InputError(f"no trip {wanted} in {name}{similar_kernels(connection, wanted)}")
    run, ir, source, *row = connection.execute(_TRIP, identity).fetchone()
    components = connection.execute(
        "SELECT name, value FROM key_components WHERE session = ? AND seq = ?", identity
    )
    stages = connection.execute(
        "SELECT name, duration_ns FROM stages WHERE session = ? AND seq = ?", identity
    )
    try:
        return from_rows(Session(id=identity[0], run=run), row, components, stages, ir, source)
    except (ValueError, TypeError) as error:
        raise RecordingError(f"trip {identity[0]}:{identity[1]} in {name} is damaged: {error}") from error


def _by_reference(connection: sqlite3.Connection, wanted: str, name: str) -> tuple[str, int] | None:
    match = _REFERENCE.fullmatch(wanted)
    if match is None:
        return None
    found = connection.execute(_BY_REFERENCE, (match[1], int(match[2]))).fetchall()
    if len(found) > 1:
        sessions = ", ".join(session for session, _ in found[:_NAMED])
        raise InputError(f"trip {wanted} is ambiguous in {name}: of the sessions {sessions}")
    return found[0] if found else None


def find_record(connection: sqlite3.Connection, wanted: str, name: str) -> tuple[Kernel, str, int] | None:
    """Return kernel, session and number of a trip that is named by these, or None if `wanted` is a kernel's name.

    Raises:
        InputError: there is no such trip, or several sessions start like this.
    """
    if _REFERENCE.fullmatch(wanted) is None:
        return None
    identity = _by_reference(connection, wanted, name)
    if identity is None:
        raise InputError(f"no trip {wanted} in {name}")
    kernel = connection.execute(
        "SELECT runtime, layer, kernel FROM trips WHERE session = ? AND seq = ?", identity
    ).fetchone()
    return Kernel(*kernel), *identity


def similar_kernels(connection: sqlite3.Connection, wanted: str) -> str:
    """Return the end of an error about a kernel that is not there: which ones it may be instead."""
    kernels: list[str] = [kernel for (kernel,) in connection.execute("SELECT DISTINCT kernel FROM trips")]
    similar = [kernel for kernel in kernels if kernel.endswith(f".{wanted}")][:_NAMED]
    similar = similar or get_close_matches(wanted, kernels, _NAMED)
    return f"; similar kernels: {', '.join(similar)}" if similar else ""
