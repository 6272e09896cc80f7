"""Turns what may go wrong into one line on standard error and an exit code."""

from __future__ import annotations

import os
import sys
from typing import Final

import click

from otel_kernel.inputs import InputError
from otel_kernel.recording.errors import RecordingError

DIFFERS: Final = 1
"""Exit code of `diff --exit-code` when something differs."""

NEEDS_ATTENTION: Final = 1
"""Exit code of `doctor` when something does not work."""

FAILED: Final = 2
"""Exit code when nothing could be done, and when a part of an INPUT could not be read."""

_INTERRUPTED: Final = 130
_PIPE_CLOSED: Final = 141
"""As of a program that SIGINT or SIGPIPE ends."""


def say(line: str) -> None:
    """Print one line on standard error."""
    click.echo(
        f"otel-kernel: {' '.join(line.split())}", err=True
    )  # `print` would turn to stdout where stderr is closed


def said(error: Exception) -> int:
    """Say what went wrong and return the exit code.

    Raises:
        Exception: the error itself, if it is a fault of otel-kernel.
    """
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.Abort):
        return _INTERRUPTED
    if isinstance(error, BrokenPipeError):
        # Whoever reads has seen enough, as `head` does. Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    if isinstance(error, click.ClickException):
        say(error.format_message())
    elif isinstance(error, (InputError, RecordingError)):
        say(str(error))
    elif isinstance(error, OSError):
        say(f"{error.filename or 'standard output'}: {error.strerror or error}")
    else:
        raise error
    return FAILED
