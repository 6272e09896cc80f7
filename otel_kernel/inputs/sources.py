"""The files that an INPUT consists of."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TypeAlias

from otel_kernel.inputs.content import may_be_content, read_content
from otel_kernel.inputs.problems import InputError, Problem
from otel_kernel.kinds import Stamped
from otel_kernel.mapping import NotATrip
from otel_kernel.recording.reader import read_trips
from otel_kernel.records import Trip
from otel_kernel.texts import TextFiles

if TYPE_CHECKING:
    from otel_kernel.inputs.clickhouse import ClickHouse
    from otel_kernel.inputs.jaeger import Jaeger
    from otel_kernel.inputs.tempo import Tempo

_SQLITE: Final = b"SQLite format 3\0"
_APPLICATION_ID: Final = slice(68, 72)
"""Where the header of a SQLite file says whose it is; CubeCL says nothing."""

_SNIFFED: Final = 64 * 1024
"""Bytes from which is seen whether a file may hold trips."""

_HELP: Final = "name a recording, a file of OTLP or of JSON lines, or a CubeCL environment"


@dataclass(frozen=True, slots=True)
class RecordingFile:
    """A recording."""

    path: Path

    def read(self, texts: TextFiles | None) -> Iterator[Trip]:
        """Yield the trips, which hold their texts, or raise `RecordingError`."""
        return read_trips(self.path)


@dataclass(frozen=True, slots=True)
class CubeclFile:
    """An environment of CubeCL."""

    path: Path

    def read(self, texts: TextFiles | None) -> Iterator[Trip | Stamped | NotATrip | Problem]:
        """Yield the records, trips and others, and what is lost, or raise `InputError`."""
        from otel_kernel.cubecl.reading import read_environment

        return read_environment(self.path)


class ContentFile:
    """A file of JSON lines or of OTLP protobuf."""

    def __init__(self, path: Path, size: int = 0) -> None:
        """Remember the file."""
        self.path = path
        self.size = size
        """Bytes of the file; 0 where they are not known."""
        self._file: BinaryIO | None = None

    @property
    def position(self) -> int:
        """Bytes read so far."""
        if self._file is None or not self.size:
            return 0
        return self.size if self._file.closed else self._file.tell()

    def read(self, texts: TextFiles | None) -> Iterator[Trip | Stamped | NotATrip | Problem]:
        """Yield what the file holds, or raise `InputError`."""
        try:
            with self.path.open("rb") as self._file:
                yield from read_content(self._file, str(self.path), texts)
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}") from error


class StandardInput:
    """Standard input, with what such a file holds."""

    def read(self, texts: TextFiles | None) -> Iterator[Trip | Stamped | NotATrip | Problem]:
        """Yield what it holds."""
        return read_content(sys.stdin.buffer, "standard input", texts)


Source: TypeAlias = "RecordingFile | CubeclFile | ContentFile | StandardInput | Jaeger | Tempo | ClickHouse"


def backend_at(spec: str) -> Source | None:
    """Return the backend that a URL names, or None if it is the name of a file.

    Raises:
        InputError: the URL is not right.
    """
    scheme, separator, _ = spec.partition("://")
    kind, _, api = scheme.partition("+")
    if not separator or Path(spec).exists():
        return None
    # Each only when it is asked for: they import what a report of a recording does not need.
    if kind == "jaeger" and api in ("http", "https"):
        from otel_kernel.inputs.jaeger import Jaeger

        return Jaeger(spec, api)
    if kind == "tempo" and api in ("http", "https"):
        from otel_kernel.inputs.tempo import Tempo

        return Tempo(spec, api)
    if kind in ("clickhouse", "chdb") and api in ("", "http", "https"):
        from otel_kernel.inputs.clickhouse import ClickHouse

        return ClickHouse(spec, "" if kind == "chdb" else api or "http")
    raise InputError(
        f"{scheme}:// is no INPUT: name jaeger+http://, jaeger+https://, tempo+http://, tempo+https://, "
        f"clickhouse://, clickhouse+https:// or chdb:///folder"
    )


def source_at(path: Path) -> Source:
    """Return what kind of source the file is.

    Raises:
        InputError: it is none.
    """
    try:
        status = path.stat()
        mode = status.st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path} is a folder: {_HELP}")
        if not stat.S_ISREG(mode):
            return ContentFile(path)  # a pipe gives its bytes only once
        with path.open("rb") as file:
            start = file.read(_SNIFFED)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}: {_HELP}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    if start.startswith(_SQLITE):
        return RecordingFile(path) if any(start[_APPLICATION_ID]) else CubeclFile(path)
    if not start:
        raise InputError(f"{path} is empty: {_HELP}")
    if not may_be_content(start):
        raise InputError(
            f"{path} is neither a recording nor a file of OTLP or of JSON lines nor a CubeCL environment"
        )
    return ContentFile(path, status.st_size)
