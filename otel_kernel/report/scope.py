"""Which runs of a recording a command is about."""

from __future__ import annotations

import sqlite3
from typing import Final

from otel_kernel.inputs import InputError

ALL: Final = "all"

_NAMED: Final = 5
"""Runs that an error names."""


def run_of(connection: sqlite3.Connection, wanted: str | None, name: str) -> str | None:
    """Return the run that `wanted` means, or None for all runs.

    Args:
        connection: a recording.
        wanted: the id of a run or its start, `all`, or None for the run that started last.
        name: how an error calls the recording.

    Raises:
        InputError: there is no such run, or there are several.
    """
    if wanted == ALL:
        return None
    runs = _newest_first(connection)
    if wanted is None:
        return runs[0] if runs else None
    found = [run for run in runs if run.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"run {wanted} is ambiguous in {name}: {_listed(found)}")
    raise InputError(f"no run {wanted} in {name}: {_listed(runs) if runs else 'it has no runs'}")


def run_before(connection: sqlite3.Connection, run: str | None, name: str) -> str:
    """Return the run that started last before `run`.

    Raises:
        InputError: there is none, or `run` is None.
    """
    runs = _newest_first(connection)
    earlier = runs[runs.index(run) + 1 :] if run is not None else []
    if not earlier:
        raise InputError(f"no earlier run in {name} to compare with: name one, or a second INPUT")
    return earlier[0]


def _newest_first(connection: sqlite3.Connection) -> list[str]:
    return [
        run
        for (run,) in connection.execute(
            "SELECT run FROM sessions GROUP BY run ORDER BY min(started_ns) DESC, run"
        )
    ]


def _listed(runs: list[str]) -> str:
    more = f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
    return f"newest first, its runs are {', '.join(runs[:_NAMED])}{more}"
