"""Writes trips as a new environment, which CubeCL opens as its own."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import cbor2

from otel_kernel import __version__, semconv
from otel_kernel.cubecl import shapes
from otel_kernel.cubecl.decoding import OUTCOME_NAMES, CubeclSession
from otel_kernel.cubecl.trips import number_of, start_of
from otel_kernel.inputs.problems import InputError
from otel_kernel.records import CompilationRecord, KernelCacheKey, Text, Trip

_WRITER: Final = f"otel-kernel {__version__}"
_CUBECL: Final = "cubecl "
_UNKNOWN: Final = "unknown"

_MAP_OF_TWO: Final = b"\xa2"

_SIDE_FILES: Final = ("-wal", "-shm", "-tshm", "-journal")
"""Endings of the files beside an environment that a program holds open."""

_TABLES: Final = f"""
CREATE TABLE {shapes.META_TABLE} (k TEXT PRIMARY KEY, v TEXT NOT NULL);
CREATE TABLE {shapes.ENTRIES_TABLES[shapes.WRITTEN_SCHEMA]} (
    namespace TEXT NOT NULL,
    key BLOB NOT NULL,
    value BLOB NOT NULL,
    origin INTEGER NOT NULL,
    PRIMARY KEY (namespace, key)
);
"""


_STAGED: Final = """
PRAGMA journal_mode = OFF;
CREATE TABLE staged (session, seq, started_ns, record, pid, build, PRIMARY KEY (session, seq));
"""


@dataclass(frozen=True, slots=True)
class Process:
    """What is known of the process of a session, beside its trips."""

    started_ns: int
    """When its first trip started, or earlier."""
    pid: int | None
    label: str | None
    """What it was doing."""
    os: str = _UNKNOWN
    """As Rust names it: `linux`."""
    arch: str = _UNKNOWN
    """As Rust names it: `x86_64`."""


@dataclass(slots=True)
class Written:
    """What became of the trips."""

    records: int = 0
    sessions: int = 0
    left_out: Counter[str] = field(default_factory=Counter[str])
    """Trips by the reason why they are no records of CubeCL."""
    texts: int = 0
    """Texts of which only a digest or a part was at hand."""


def row_key(session: int, seq: int) -> bytes:
    """Return the key that CubeCL stores a record under."""
    return cbor2.dumps([session, seq])


def record_value(record: CompilationRecord, key: KernelCacheKey) -> bytes:
    """Return a record as CubeCL encodes it; a text of which a part is missing is left out.

    Args:
        record: the record.
        key: its key, which CubeCL always has.
    """
    return cbor2.dumps(
        {
            "kernel": record.kernel,
            "key": {"id": key.id, "build_id": key.build_id},
            "ir": record.ir if isinstance(record.ir, str) else None,
            "outcome": OUTCOME_NAMES[record.outcome],
            shapes.WRITTEN_DURATION: _duration(record.duration),
            "source": record.source if isinstance(record.source, str) else None,
        }
    )


def row_value(session: int, seq: int, offset: int, record: bytes) -> bytes:
    """Return a record with its stamp as CubeCL stores them.

    Args:
        session: its number in CubeCL.
        seq: among the records of its session.
        offset: since the session started, ns.
        record: what `record_value` returned.
    """
    stamp = {"session": session, "seq": seq, "offset": _duration(offset)}
    return b"".join((_MAP_OF_TWO, cbor2.dumps("stamp"), cbor2.dumps(stamp), cbor2.dumps("record"), record))


def session_value(session: CubeclSession) -> bytes:
    """Return a session as CubeCL stores it."""
    return cbor2.dumps(
        {
            "id": session.id,
            "started_unix_ms": session.started_unix_ms,
            "cubecl_version": session.cubecl_version,
            "label": session.label,
            "process": session.process,
            "os": session.os,
            "arch": session.arch,
        }
    )


def _duration(ns: int) -> dict[str, int]:
    return {"secs": ns // 10**9, "nanos": ns % 10**9}


def write_environment(
    path: Path,
    trips: Iterable[Trip],
    processes: Mapping[str, Process],
    sessions: Mapping[int, CubeclSession],
) -> Written:
    """Write the records among trips into a new environment.

    It is made under another name and then linked, so that nobody ever sees half of it.

    Args:
        path: a file that is not there yet.
        trips: those to write.
        processes: what is known of the sessions' processes, by the session's id.
        sessions: sessions that came from CubeCL, by their number.

    Raises:
        InputError: there is a file, or a program holds one open there, or it cannot be made.
    """
    _check_free(path)
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    except OSError as error:
        raise InputError(f"{path} cannot be made: {error.strerror or error}") from error
    os.close(descriptor)
    try:
        written = _write(Path(name), trips, processes, sessions)
        _check_free(path)
        os.link(name, path)
    except FileExistsError:
        raise _there(path) from None
    except (OSError, sqlite3.Error) as error:
        raise InputError(f"{path} cannot be written: {error}") from error
    finally:
        for ending in ("", *_SIDE_FILES):
            Path(name + ending).unlink(missing_ok=True)
    return written


def _check_free(path: Path) -> None:
    if os.path.lexists(path):
        raise _there(path)
    for ending in _SIDE_FILES:
        if os.path.lexists(f"{path}{ending}"):
            raise InputError(
                f"{path}{ending} is there: a program may hold {path} open, name another file, or end the program "
                f"and remove it"
            )


def _there(path: Path) -> InputError:
    return InputError(f"{path} is there already: name a file that is not, or remove it")


def _write(
    path: Path,
    trips: Iterable[Trip],
    processes: Mapping[str, Process],
    known: Mapping[int, CubeclSession],
) -> Written:
    written = Written()
    # A session starts with the earliest of its trips, which need not come first: they wait in a file for it.
    with closing(sqlite3.connect("", isolation_level=None)) as staged:
        staged.executescript(_STAGED)
        for trip in trips:
            reason = _reason(trip)
            if reason is not None:
                written.left_out[reason] += 1
                continue
            staged.execute("INSERT INTO staged VALUES (?, ?, ?, ?, ?, ?)", _staged(trip))
            written.records += 1
            written.texts += _is_partial(trip.ir) + _is_partial(trip.source)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            written.sessions = _fill(connection, staged, processes, known)
    return written


def _staged(trip: Trip) -> tuple[object, ...]:
    assert trip.record is not None
    assert trip.key is not None
    pid, build = (trip.attributes.get(name) for name in (semconv.PROCESS_PID, semconv.BUILD))
    return trip.session.id, trip.seq, trip.started_ns, record_value(trip.record, trip.key), pid, build


def _fill(
    connection: sqlite3.Connection,
    staged: sqlite3.Connection,
    processes: Mapping[str, Process],
    known: Mapping[int, CubeclSession],
) -> int:
    connection.executescript(f"BEGIN;{_TABLES}")
    version = (shapes.SCHEMA_KEY, str(shapes.WRITTEN_SCHEMA))
    connection.execute(f"INSERT INTO {shapes.META_TABLE} VALUES (?, ?)", version)
    insert = (
        f"INSERT INTO {shapes.ENTRIES_TABLES[shapes.WRITTEN_SCHEMA]} VALUES (?, ?, ?, {shapes.LOCAL_ORIGIN})"
    )
    taken: set[int] = set(known)
    groups = staged.execute(
        "SELECT session, min(started_ns), max(pid), max(build) FROM staged GROUP BY session ORDER BY 2"
    ).fetchall()
    for session_id, started_ns, pid, build in groups:
        session = _session(session_id, started_ns, pid, build, processes.get(session_id), known, taken)
        taken.add(session.id)
        start = start_of(session.id, session)
        connection.execute(
            insert, (shapes.namespace(shapes.SESSIONS), cbor2.dumps(session.id), session_value(session))
        )
        connection.executemany(
            insert,
            (
                (
                    CompilationRecord.namespace(),
                    row_key(session.id, seq),
                    row_value(session.id, seq, max(0, trip_ns - start), record),
                )
                for seq, trip_ns, record in staged.execute(
                    "SELECT seq, started_ns, record FROM staged WHERE session = ? ORDER BY seq", (session_id,)
                )
            ),
        )
    connection.execute("COMMIT")
    return len(groups)


def _session(
    session_id: str,
    started_ns: int,
    pid: object,
    build: object,
    process: Process | None,
    known: Mapping[int, CubeclSession],
    taken: Set[int],
) -> CubeclSession:
    number = number_of(session_id)
    if number is not None and number in known:
        return known[number]
    if number is None:
        number = started_ns if process is None else min(started_ns, process.started_ns)
        while number in taken:
            number -= 1
    if pid is None and process is not None:
        pid = process.pid
    version = build.removeprefix(_CUBECL) if isinstance(build, str) and build.startswith(_CUBECL) else _WRITER
    return CubeclSession(
        id=number,
        started_unix_ms=number // 10**6,
        cubecl_version=version,
        label=None if process is None else process.label,
        process=pid if type(pid) is int and 0 <= pid < 2**32 else 0,
        os=_UNKNOWN if process is None else process.os,
        arch=_UNKNOWN if process is None else process.arch,
        other={},
    )


def _reason(trip: Trip) -> str | None:
    """Return why a trip is no record of CubeCL, or None if it is one."""
    if trip.outcome is None:
        return trip.state
    return "without a key" if trip.key is None else None


def _is_partial(text: Text) -> bool:
    return text is not None and not isinstance(text, str)
