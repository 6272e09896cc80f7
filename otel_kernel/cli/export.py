"""`otel-kernel export`."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TextIO

import click

from otel_kernel.cli.cubecl_export import export_environment
from otel_kernel.cli.progress import shown
from otel_kernel.cli.reading import Problems, takes_input, takes_run, takes_text_files, text_output
from otel_kernel.inputs import Input, Problem, open_input
from otel_kernel.records import Trip
from otel_kernel.report.selection import number_of_trips, selected
from otel_kernel.report.words import count
from otel_kernel.texts import TextFiles


@click.command()
@takes_input
@takes_run
@takes_text_files
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="File to write, which must not be there yet; by default standard output.",
)
@click.option(
    "--cubecl",
    "environment",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write a CubeCL environment instead, a new file that CubeCL opens.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Also trips that failed, were abandoned or never ended."
)
def export(
    spec: str,
    run: str | None,
    texts: TextFiles | None,
    output: Path | None,
    environment: Path | None,
    everything: bool,
) -> int:
    """Write the records of INPUT as JSON lines, with their texts, or as a CubeCL environment.

    A line is what `list --json` prints, and every command takes a file of them as its INPUT.
    """
    problems = Problems()
    found = open_input(spec, texts=texts)
    if environment is not None:
        if output is not None or everything:
            raise click.UsageError("--cubecl goes with neither --output nor --all")
        trips = selected(found, run, spec)
        export_environment(environment, found, _watched(trips, found, run, spec), problems)
        return problems.exit_code()
    written = 0
    with _new_file(output) if output is not None else nullcontext(text_output()) as lines:
        trips = selected(found, run, spec)
        for each in trips if lines.isatty() else _watched(trips, found, run, spec):
            if isinstance(each, Problem):
                problems(each)
            elif everything or each.outcome is not None:
                lines.write(f"{json.dumps(each.to_json())}\n")
                written += 1
    if output is not None:
        click.echo(f"{count(written, 'trip')} in {output}")
    return problems.exit_code()


@contextmanager
def _new_file(path: Path) -> Generator[TextIO]:
    """Make a file that only we may read, as a recording is; it is gone again if it does not become whole."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise click.UsageError(f"{path} is there already: name a file that is not, or remove it") from None
    try:
        with open(descriptor, "w", encoding="utf-8") as lines:  # noqa: PTH123 - a descriptor has no path
            yield lines
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _watched(
    trips: Iterable[Trip | Problem], found: Input, run: str | None, name: str
) -> Iterable[Trip | Problem]:
    path = found.recording
    if path is None:
        return shown(trips, "exporting", lambda: found.size, lambda _: found.position)
    return shown(trips, "exporting", lambda: number_of_trips(path, run, name))
