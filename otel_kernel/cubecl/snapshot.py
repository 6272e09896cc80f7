"""A private, verified copy of an environment, which other processes may be writing.

CubeCL writes through an engine whose locks SQLite does not see, so the file itself is never opened by SQLite.
It is copied with its log: a copy counts if the log was only added to meanwhile and the database was not
changed at all, and if SQLite finds nothing wrong with it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from otel_kernel.inputs.problems import InputError

LOG_ENDING: Final = "-wal"

_TRIES: Final = 40
_PAUSE: Final = 0.05
"""Seconds before a copy is tried again."""

_LOG_HEADER: Final = 32
"""Bytes at the start of a log, among them the salts that change when it starts anew."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What changes with the content of an environment."""

    database: tuple[int, int, int]
    """inode, size and time of the last change in ns."""
    log: tuple[int, int, int]
    header: bytes
    """Of the log."""


class _TornError(Exception):
    """Says why a copy does not count."""


def state_of(path: Path) -> FileState:
    """Return the state of an environment, or raise `OSError`."""
    status = path.stat()
    log = Path(f"{path}{LOG_ENDING}")
    try:
        with log.open("rb") as file:
            of_log = os.fstat(file.fileno())
            header = file.read(_LOG_HEADER)
    except FileNotFoundError:
        return FileState((status.st_ino, status.st_size, status.st_mtime_ns), (0, 0, 0), b"")
    return FileState(
        (status.st_ino, status.st_size, status.st_mtime_ns),
        (of_log.st_ino, of_log.st_size, of_log.st_mtime_ns),
        header,
    )


@contextmanager
def snapshot(path: Path) -> Generator[sqlite3.Connection]:
    """Open a verified copy of an environment.

    Raises:
        InputError: it cannot be read, is no database, is damaged, or changes too fast to be copied.
    """
    with tempfile.TemporaryDirectory(prefix="otel-kernel-") as folder:
        copy = Path(folder) / "environment.db"
        with closing(_verified(path, copy)) as connection:
            yield connection


def _verified(path: Path, copy: Path) -> sqlite3.Connection:
    wrong = ""
    for tried in range(_TRIES):
        if tried:
            time.sleep(_PAUSE)
        try:
            _copy(path, copy)
            return _opened(copy)
        except _TornError as error:
            wrong = str(error)
        except FileNotFoundError:
            raise InputError(f"there is no file {path}: name a CubeCL environment") from None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    raise InputError(f"{path} cannot be read as a CubeCL environment after {_TRIES} tries: {wrong}")


def _copy(path: Path, copy: Path) -> None:
    for ending in (LOG_ENDING, "-shm"):
        Path(f"{copy}{ending}").unlink(missing_ok=True)
    before = state_of(path)
    shutil.copyfile(path, copy)
    if before.log[1]:
        shutil.copyfile(f"{path}{LOG_ENDING}", f"{copy}{LOG_ENDING}")
    after = state_of(path)
    if before.database != after.database:
        raise _TornError("the database was written while it was copied")
    if before.header != after.header or before.log[0] != after.log[0] or before.log[1] > after.log[1]:
        raise _TornError("its log was started anew while it was copied")


def _opened(copy: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(copy, isolation_level=None)
    try:
        found: str = connection.execute("PRAGMA quick_check (1)").fetchone()[0]
        if found != "ok":
            raise _TornError(f"it is damaged ({' '.join(found.split())})")
    except sqlite3.Error as error:
        connection.close()
        raise _TornError(f"it is damaged or no database ({error})") from error
    except BaseException:
        connection.close()
        raise
    return connection
