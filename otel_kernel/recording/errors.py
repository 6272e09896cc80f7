"""What can go wrong with a recording, each in one line."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from otel_kernel.faults import UserError

BUSY_SECONDS = 10.0
"""How long one waits for a lock that another process holds."""

# SQLite's own words for an error. Its numbers came to Python in 3.11 only.
_LOCKED = "locked"
_READ_ONLY = "readonly"
_CANNOT_OPEN = "unable to open"
_DAMAGED = ("malformed", "not a database", "no such table", "no such column", "has no column")
_FULL = "disk is full"


class RecordingError(UserError):
    """A recording cannot be used; the message is one line: what is wrong, where, and what to do."""

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        """Keep the message.

        Args:
            message: one line.
            lasting: whether trying again is of no use.
        """
        super().__init__(message)
        self.lasting = lasting


class RefusedTripError(RecordingError):
    """A trip contradicts what the recording holds already; others can be written all the same."""


def is_locked(error: BaseException | None) -> bool:
    """Whether another process holds a lock."""
    return isinstance(error, sqlite3.OperationalError) and _LOCKED in str(error)


def cannot_make_side_files(error: Exception) -> bool:
    """Whether SQLite could not make its files beside the recording."""
    text = str(error)
    return isinstance(error, sqlite3.OperationalError) and (_READ_ONLY in text or _CANNOT_OPEN in text)


def damaged(path: Path, detail: str) -> RecordingError:
    """Return the error of a recording with unreadable pages."""
    return RecordingError(
        f"the recording {path} is damaged ({detail}): move it away; "
        f"`sqlite3 FILE .recover` may save what is left of it",
        lasting=True,
    )


def explain(path: Path, error: Exception) -> RecordingError:
    """Return the error that says what SQLite or the operating system found wrong with `path`."""
    text = " ".join(str(error).split())
    if is_locked(error):
        return RecordingError(
            f"the recording {path} is locked by another process for too long: end the program that holds it"
        )
    if any(words in text for words in _DAMAGED):
        return damaged(path, text)
    if _FULL in text:
        return RecordingError(
            f"no space left to write the recording {path}: free some, or name a file on another disk"
        )
    if cannot_make_side_files(error):
        return RecordingError(
            f"the recording {path} cannot be opened or written ({text}): check the permissions of the file and "
            f"its folder"
        )
    return RecordingError(f"the recording {path} cannot be used: {text}")


@contextmanager
def explained(path: Path) -> Generator[None, None, None]:
    """Turn SQLite's errors about `path` into `RecordingError`."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(path, error) from error
