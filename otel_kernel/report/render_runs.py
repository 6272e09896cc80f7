"""Runs for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Final

from rich.table import Table
from rich.text import Text

from otel_kernel.report.console import console_on, counts_text
from otel_kernel.report.runs import Run
from otel_kernel.report.words import count, duration, moment, safe

_SHORTEST: Final = 8
"""Digits of an id that are shown, unless two runs start alike."""


def print_runs(runs: Sequence[Run], file: IO[str]) -> None:
    """Print one entry of two lines a run."""
    with console_on(file) as console:
        if not runs:
            console.print("No runs.")
            return
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        digits = _digits([run.run for run in runs])
        for run in runs:
            table.add_row(Text(run.run[:digits], style="bold"), _what(run))
            table.add_row("", _came_to(run))
        console.print(table)


def _digits(ids: Sequence[str]) -> int:
    """Return how many digits tell the runs apart."""
    digits = _SHORTEST
    while len({each[:digits] for each in ids}) < len(ids):
        digits += 1
    return digits


def _what(run: Run) -> Text:
    parts = [moment(run.started_ns)]
    if run.program:
        parts.append(safe(run.program) + (f" on {safe(run.host)}" if run.host else ""))
    parts.append(count(run.processes, "process", "processes"))
    return Text(", ".join(parts))


def _came_to(run: Run) -> Text:
    line = Text(f"{count(run.counts.trips, 'trip')}: ").append(counts_text(run.counts))
    line.append(f"; {duration(run.spent_ns)} spent")
    if run.live:
        line.append("; it still runs", style="green")
    return line
