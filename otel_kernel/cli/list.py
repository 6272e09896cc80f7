"""`otel-kernel list`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click

from otel_kernel.cli.reading import (
    Problems,
    takes_input,
    takes_json,
    takes_run,
    takes_text_files,
    text_output,
)
from otel_kernel.inputs import Input, InputError, Problem, open_input
from otel_kernel.recording.reader import connect_readonly, read_trips
from otel_kernel.records import Trip
from otel_kernel.report.scope import ALL, run_of
from otel_kernel.report.words import duration, moment, safe
from otel_kernel.texts import TextFiles


@click.command("list")
@takes_input
@takes_run
@takes_json
@takes_text_files
@click.option(
    "--all", "everything", is_flag=True, help="Also trips that failed, were abandoned or never ended."
)
def list_trips(spec: str, run: str | None, as_json: bool, texts: TextFiles | None, everything: bool) -> int:
    """List the records of INPUT, one a line.

    INPUT is a recording, a file or pattern of files of OTLP JSON lines, or - for such lines on standard input;
    by default the recording of this host.
    """
    problems = Problems()
    found = open_input(spec, texts=texts)
    output = text_output()
    for each in _selected(found, run, spec):
        if isinstance(each, Problem):
            problems(each)
        elif everything or each.outcome is not None:
            output.write(json.dumps(each.to_json()) if as_json else _line(each))
            output.write("\n")
    return problems.exit_code(found)


def _selected(found: Input, run: str | None, name: str) -> Iterator[Trip | Problem]:
    path = found.recording
    if path is not None:
        yield from read_trips(path, _run_of(path, run, name))
    elif run is None or run == ALL:
        yield from found
    else:
        yield from _of_run(found, run, name)


def _run_of(path: Path, run: str | None, name: str) -> str | None:
    with closing(connect_readonly(path)) as connection:
        return run_of(connection, run, name)


def _of_run(found: Input, run: str, name: str) -> Iterator[Trip | Problem]:
    none = True
    for each in found:
        if isinstance(each, Problem):
            yield each
        elif each.session.run.startswith(run):
            none = False
            yield each
    if none:
        raise InputError(f"no run {run} in {name}")


def _line(trip: Trip) -> str:
    time = "" if trip.duration_ns is None else duration(trip.duration_ns)
    how = trip.outcome.value if trip.outcome else trip.state
    return f"{moment(trip.started_ns)}  {how:10}  {time:>12}  {trip.session.id[:8]}:{trip.seq:<4}  {safe(trip.kernel)}"
