"""Reads an environment: its sessions, and its records in the order in which they were stamped."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from otel_kernel.cubecl import shapes
from otel_kernel.cubecl.decoding import (
    CubeclSession,
    DecodeError,
    Row,
    decode_key,
    decode_record,
    decode_session,
)
from otel_kernel.cubecl.snapshot import snapshot
from otel_kernel.inputs.problems import InputError, Problem


class Environment:
    """One state of an environment, to be read while `opened` holds it open."""

    def __init__(self, path: Path, connection: sqlite3.Connection, schema: int) -> None:
        self.path = path
        self.schema = schema
        """The version of its tables."""
        self.problems: list[Problem] = []
        """Sessions and keys that cannot be read."""
        self._connection = connection
        self._table = shapes.ENTRIES_TABLES[schema]
        self.sessions = self._read_sessions()
        """By their id, as far as they are still listed: pruning may leave records without their session."""
        self.stamps = self._read_stamps()
        """Session, seq and kind of every record, in order."""

    def rows(self, wanted: frozenset[tuple[int, int]] | None = None) -> Iterator[Row | Problem]:
        """Yield the records in the order in which they were stamped, and a problem for each one lost in its row.

        Args:
            wanted: session and seq of those to yield; None yields all.
        """
        for session, seq, kind, key in self._stamps_with_keys:
            if wanted is not None and (session, seq) not in wanted:
                continue
            where = f"{self.path}: {shapes.namespace(kind)} [{session}, {seq}]"
            try:
                row = decode_record(kind, self._value(kind, key))
            except DecodeError as error:
                yield Problem(where, str(error))
                continue
            if (row.session, row.seq) != (session, seq):
                yield Problem(where, f"its stamp says [{row.session}, {row.seq}]")
                continue
            yield row

    def _value(self, kind: str, key: bytes) -> bytes:
        select = f"SELECT value FROM {self._table} WHERE namespace = ? AND key = ?"
        value: bytes = self._connection.execute(select, (shapes.namespace(kind), key)).fetchone()[0]
        return value

    def _read_sessions(self) -> dict[int, CubeclSession]:
        sessions: dict[int, CubeclSession] = {}
        namespace = shapes.namespace(shapes.SESSIONS)
        select = f"SELECT value FROM {self._table} WHERE namespace = ?"
        for (value,) in self._connection.execute(select, (namespace,)):
            try:
                session = decode_session(value)
            except DecodeError as error:
                self.problems.append(Problem(f"{self.path}: {namespace}", str(error)))
                continue
            sessions[session.id] = session
        return sessions

    def _read_stamps(self) -> list[tuple[int, int, str]]:
        self._stamps_with_keys: list[tuple[int, int, str, bytes]] = []
        select = f"SELECT namespace, key FROM {self._table} WHERE namespace >= ? AND namespace < ?"
        ours = shapes.namespace("")
        end = shapes.RECORDS[:-1] + chr(ord("/") + 1)
        newer: set[str] = set()
        for namespace, key in self._connection.execute(select, (shapes.RECORDS, end)):
            if not namespace.startswith(ours):
                newer.add(namespace)
                continue
            kind = namespace[len(ours) :]
            if kind == shapes.SESSIONS:
                continue
            try:
                session, seq = decode_key(key)
            except DecodeError as error:
                self.problems.append(Problem(f"{self.path}: {namespace}", str(error)))
                continue
            self._stamps_with_keys.append((session, seq, kind, key))
        for namespace in sorted(newer):
            self.problems.append(
                Problem(
                    str(self.path),
                    f"{namespace} holds records of another version than {shapes.RECORDS_VERSION}, the one that "
                    f"this otel-kernel knows: update it",
                )
            )
        self._stamps_with_keys.sort()
        return [stamp[:3] for stamp in self._stamps_with_keys]


@contextmanager
def opened(path: Path) -> Generator[Environment]:
    """Open a verified copy of an environment; programs may go on writing it meanwhile.

    Raises:
        InputError: it cannot be read, is no environment, or one of a schema that is not known.
    """
    with snapshot(path) as connection:
        try:
            yield Environment(path, connection, _schema(path, connection))
        except sqlite3.Error as error:
            raise InputError(f"{path} is damaged: {' '.join(str(error).split())}") from error


def sessions_of(path: Path) -> dict[int, CubeclSession]:
    """Return the sessions of an environment by their number, or raise `InputError`."""
    with opened(path) as environment:
        return environment.sessions


def _schema(path: Path, connection: sqlite3.Connection) -> int:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    found: str | None = None
    if shapes.META_TABLE in tables:
        try:
            row = connection.execute(f"SELECT v FROM {shapes.META_TABLE} WHERE k = ?", (shapes.SCHEMA_KEY,))
            found = (row.fetchone() or (None,))[0]
        except sqlite3.OperationalError:  # a table of another program
            found = None
    if found is None:
        raise InputError(
            f"{path} is a SQLite file of another program: name a recording or a CubeCL environment"
        )
    known = f"{shapes.OLDEST_SCHEMA} to {shapes.NEWEST_SCHEMA}"
    if not found.isdecimal() or int(found) not in shapes.ENTRIES_TABLES:
        newer = found.isdecimal() and int(found) > shapes.NEWEST_SCHEMA
        raise InputError(
            f"{path} is a CubeCL environment of schema {found}, and this otel-kernel knows {known}: "
            + ("update it" if newer else "read it with the CubeCL that wrote it")
        )
    schema = int(found)
    if shapes.ENTRIES_TABLES[schema] not in tables:
        raise InputError(
            f"{path} is a CubeCL environment of schema {schema} without a table {shapes.ENTRIES_TABLES[schema]}"
        )
    return schema
