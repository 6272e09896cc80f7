"""`otel-kernel diff`."""

from __future__ import annotations

import json
from contextlib import ExitStack

import click

from otel_kernel.cli.errors import DIFFERS
from otel_kernel.cli.progress import reading
from otel_kernel.cli.reading import (
    Problems,
    default_input,
    left_out,
    print_left_out,
    takes_json,
    text_output,
)
from otel_kernel.inputs.opening import STANDARD_INPUT
from otel_kernel.report.difference import Threshold, compare
from otel_kernel.report.instances import Side, read_side
from otel_kernel.report.opening import Opened, opened
from otel_kernel.report.scope import ALL, run_before, run_of


@click.command()
@click.argument("specs", metavar="[INPUT [INPUT]]", nargs=-1)
@click.option("--before", metavar="ID", help="Run to compare with; by default the one before the other.")
@click.option("--after", metavar="ID", help="Run to look at; by default the latest.")
@click.option(
    "--ms",
    type=click.FloatRange(min=0),
    default=10,
    show_default=True,
    help="Milliseconds from which on a time differs, if it does by --percent too.",
)
@click.option(
    "--percent",
    type=click.FloatRange(min=0),
    default=25,
    show_default=True,
    help="Percent of the time before from which on a time differs.",
)
@click.option("--exit-code", is_flag=True, help=f"End with {DIFFERS} if anything differs.")
@takes_json
def diff(
    specs: tuple[str, ...],
    before: str | None,
    after: str | None,
    ms: float,
    percent: float,
    exit_code: bool,
    as_json: bool,
) -> int:
    """Say what differs between two runs: kernels new and gone, other outcomes and why, slower and faster.

    The two runs are in one INPUT, by default the recording of this host, or in two. Of two recordings the latest
    runs are compared, of other INPUTs all of each.

    INPUT is a recording, a file or pattern of files of JSON lines, as OTLP or as `export` writes them, or - for
    such lines on standard input.
    """
    if len(specs) > 2:
        raise click.UsageError(f"two INPUTs at most, got {len(specs)}: put a pattern in quotes")
    if specs.count(STANDARD_INPUT) > 1:
        raise click.UsageError("standard input can be read only once: name one file")
    problems = Problems()
    with ExitStack() as stack:
        found = [
            stack.enter_context(opened(spec, problems, read=reading)) for spec in specs or (default_input(),)
        ]
        if len(found) == 1:
            sides = _in_one(found[0], before, after)
        else:
            sides = _side(found[0], before), _side(found[1], after)
        difference = compare(*sides, Threshold(round(ms * 1e6), percent / 100))
    inputs = [each.input for each in found]
    if as_json:
        from otel_kernel.report.difference_json import difference_json

        click.echo(json.dumps({**difference_json(difference), **left_out(*inputs)}))
    else:
        from otel_kernel.report.render_difference import print_difference

        print_difference(difference, text_output())
        print_left_out(*inputs)
    return problems.exit_code() or (DIFFERS if exit_code and not difference.is_none else 0)


def _in_one(found: Opened, before: str | None, after: str | None) -> tuple[Side, Side]:
    connection, name = found.connection, found.name
    run = run_of(connection, after, name)
    earlier = run_before(connection, run, name) if before is None else run_of(connection, before, name)
    return read_side(connection, name, earlier), read_side(connection, name, run)


def _side(found: Opened, run: str | None) -> Side:
    wanted = run if run is not None or found.is_recording else ALL
    return read_side(found.connection, found.name, run_of(found.connection, wanted, found.name))
