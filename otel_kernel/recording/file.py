"""The file of a recording: where it is, how it is made, checked and opened for writing.

A recording is never read with plain file calls, not even its header: when a process closes any descriptor
of a file, POSIX drops all locks that it holds on that file, and SQLite's locks with them.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from otel_kernel.faults import logger
from otel_kernel.recording import schema
from otel_kernel.recording.errors import BUSY_SECONDS, RecordingError, damaged, explain, explained, is_locked
from otel_kernel.recording.mounts import network_file_system

_SMALLEST: Final = 512
"""Bytes of the smallest SQLite file."""

READ: Final = "mode=ro"
WRITE: Final = "mode=rw"
IMMUTABLE: Final = "immutable=1"
"""Reads the file alone, as if nobody wrote it: no log, no locks, nothing made beside it."""

SIDE_FILES: Final = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps beside an open recording."""


def default_path() -> Path:
    """Return `$XDG_STATE_HOME/otel-kernel/<host>.db`, by default below `~/.local/state`.

    Raises:
        RecordingError: there is no home folder.
    """
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        try:
            state = Path.home() / ".local" / "state"
        except RuntimeError as error:
            raise RecordingError("there is no home folder to keep a recording in: name its file") from error
    return state / "otel-kernel" / f"{os.uname().nodename}.db"


def real_path(path: Path) -> Path:
    """Return `path` as absolute path without links, as SQLite names its side files after."""
    return Path(os.path.realpath(path))


def create_or_check(path: Path) -> None:
    """Make the recording, or check every page of the one that is there and that it can be written.

    Raises:
        RecordingError: there is something else at `path`, or the recording is damaged, of another version or
            cannot be written. The file is left as it is.
    """
    path = real_path(path)
    try:
        check_header(path)
    except FileNotFoundError:
        pass  # it is made when it is opened
    else:
        _warn_of_network(path)
        _check_pages(path)
    with explained(path), closing(connect_writer(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")


def create(path: Path) -> None:
    """Make an empty recording, with mode 0600; one that appears there meanwhile is left as it is.

    It is made under another name and then linked, so that nobody ever sees half of it.

    Raises:
        RecordingError: it cannot be made.
    """
    if path.parent == _default_folder():
        with _explaining(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _explaining(path):
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    os.close(descriptor)
    try:
        with explained(path), closing(sqlite3.connect(name, isolation_level=None)) as connection:
            connection.executescript(f"BEGIN;\n{schema.DDL}COMMIT;\nPRAGMA journal_mode = WAL;")
        with _explaining(path), suppress(FileExistsError):
            os.link(name, path)
    finally:
        for ending in ("", *SIDE_FILES):
            Path(name + ending).unlink(missing_ok=True)
    _warn_of_network(path)


def check_header(path: Path) -> None:
    """Check that the file is a recording of this version, without touching it.

    Raises:
        RecordingError: it is none, or none that this version reads.
        FileNotFoundError: there is no file.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        raise  # whoever asks knows what that means
    except OSError as error:
        raise RecordingError(f"the recording {path} cannot be looked at: {error.strerror}") from error
    if stat.S_ISDIR(status.st_mode):
        raise RecordingError(f"the recording {path} is a folder: name a file", lasting=True)
    if not stat.S_ISREG(status.st_mode):
        raise RecordingError(f"the recording {path} is no regular file: name another one", lasting=True)
    if status.st_size == 0:
        raise RecordingError(f"the recording {path} is empty: remove it, or name another file", lasting=True)
    application_id, version = _header(path, status.st_size)
    if application_id != schema.APPLICATION_ID:
        raise RecordingError(
            f"{path} is a SQLite file of another program, not a recording: name another file", lasting=True
        )
    check_version(path, version)


def check_version(path: Path, version: int) -> None:
    """Raise `RecordingError` unless this version knows tables of that `user_version`."""
    if version != schema.USER_VERSION:
        raise RecordingError(
            f"the recording {path} has tables of version {version}, this otel-kernel knows version "
            f"{schema.USER_VERSION}: use the otel-kernel that wrote it, or name another file",
            lasting=True,
        )


def _header(path: Path, size: int) -> tuple[int, int]:
    """Return application_id and user_version of the file itself; its log and locks are left alone."""
    foreign = RecordingError(f"{path} is not a recording: name another file", lasting=True)
    if size < _SMALLEST:
        raise foreign
    try:
        with closing(sqlite3.connect(uri(path, IMMUTABLE), uri=True)) as connection:
            # Lets SQLite read the header also while the pages that it counts are not all written yet.
            connection.execute("PRAGMA writable_schema = ON")
            application_id: int = connection.execute("PRAGMA application_id").fetchone()[0]
            version: int = connection.execute("PRAGMA user_version").fetchone()[0]
            return application_id, version
    except sqlite3.OperationalError as error:
        raise explain(path, error) from error
    except sqlite3.DatabaseError as error:
        raise foreign from error


def _check_pages(path: Path) -> None:
    with (
        explained(path),
        closing(sqlite3.connect(uri(path, READ), uri=True, timeout=BUSY_SECONDS)) as connection,
    ):
        connection.execute("SELECT 1 FROM sessions LIMIT 1")
        found: str = connection.execute("PRAGMA quick_check (1)").fetchone()[0]
    if found != "ok":
        raise damaged(path, " ".join(found.split()))


def connect_writer(path: Path, wait: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Open a recording for writing, in autocommit mode; it is made if there is none.

    Args:
        path: the recording, without links.
        wait: seconds for which this and later calls wait for a lock.

    Raises:
        RecordingError: it cannot be made or opened, or something else is there.
    """
    leftover = log_size(path)
    try:
        check_header(path)
    except FileNotFoundError:
        if leftover:
            raise RecordingError(
                f"the recording {path} was removed and {path.name}-wal was left: end the programs that write "
                f"it and remove that file too",
                lasting=True,
            ) from None
        create(path)
        check_header(path)
    deadline = time.monotonic() + wait
    pause = 0.005
    while True:
        try:
            return _open(path, wait)
        except sqlite3.Error as error:
            # SQLite does not wait by itself when several processes set up or recover the log at once.
            if not is_locked(error) or time.monotonic() > deadline:
                raise explain(path, error) from error
        time.sleep(pause)
        pause = min(2 * pause, 0.2)


def _open(path: Path, wait: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri(path, WRITE), uri=True, timeout=wait, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        # A newer otel-kernel may have changed it in the log, where the header does not show it yet.
        check_version(path, connection.execute("PRAGMA user_version").fetchone()[0])
    except BaseException:
        connection.close()
        raise
    return connection


def log_size(path: Path) -> int:
    """Return the bytes of the log beside the recording; a reader leaves an empty one behind."""
    try:
        return Path(f"{path}-wal").stat().st_size
    except OSError:
        return 0


def uri(path: Path, mode: str) -> str:
    """Return the name under which SQLite opens the file at `path` and never makes one."""
    return f"{path.as_uri()}?{mode}"


def _default_folder() -> Path | None:
    try:
        return real_path(default_path()).parent
    except RecordingError:
        return None


@contextmanager
def _explaining(path: Path) -> Generator[None, None, None]:
    try:
        yield
    except OSError as error:
        raise RecordingError(
            f"the recording {path} cannot be made ({error.strerror}): its folder must exist, be writable and "
            f"allow links"
        ) from error


def _warn_of_network(path: Path) -> None:
    kind = network_file_system(path)
    if kind is not None:
        logger.warning(
            "the recording %s is on a network file system (%s), where locks may not hold: rows can be lost if "
            "several hosts write it. Name a file on a local disk.",
            path,
            kind,
        )
