"""Turns what may go wrong into one line on standard error and an exit code."""

from __future__ import annotations

import os
import sys
from typing import Final, NamedTuple

import click

from otel_kernel.faults import UserError
from otel_kernel.inputs import InputError

DONE: Final = 0
DIFFERS: Final = 1
DOES_NOT_HOLD: Final = 1
NEEDS_ATTENTION: Final = 1
FAILED: Final = 2
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141


class ExitCode(NamedTuple):
    """What an exit code means."""

    code: int
    commands: str
    meaning: str


EXIT_CODES: Final = (
    ExitCode(DONE, "all", "it is done, and all of every INPUT was read"),
    ExitCode(DIFFERS, "`diff --exit-code`", "something differs"),
    ExitCode(DOES_NOT_HOLD, "`check`", "a check does not hold"),
    ExitCode(NEEDS_ATTENTION, "`doctor`", "something does not work"),
    ExitCode(FAILED, "all", "nothing could be done, or a part of an INPUT could not be read"),
    ExitCode(FAILED, "`check`", "whether a check holds cannot be told, and none fails"),
    ExitCode(INTERRUPTED, "all but `run`", "interrupted, as by ^C"),
    ExitCode(PIPE_CLOSED, "all but `run`", "whoever reads the output has seen enough, as `head` does"),
)
"""All of them; `run` ends as its program does, once that is started."""


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
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        # Whoever reads has seen enough, as `head` does. Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    if isinstance(error, click.ClickException):
        say(error.format_message())
    elif isinstance(error, (InputError, UserError)):
        say(str(error))
    elif isinstance(error, OSError):
        say(f"{error.filename or 'standard output'}: {error.strerror or error}")
    else:
        raise error
    return FAILED
