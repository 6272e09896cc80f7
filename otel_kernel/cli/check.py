"""`otel-kernel check`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Final

import click

from otel_kernel.cli.errors import DOES_NOT_HOLD, FAILED
from otel_kernel.cli.progress import reading
from otel_kernel.cli.reading import (
    Problems,
    left_out,
    print_left_out,
    takes_input,
    takes_json,
    takes_run,
    text_output,
)
from otel_kernel.report.checks import Expected, check_run
from otel_kernel.report.opening import opened
from otel_kernel.report.scope import ALL, run_of

_CODES: Final = {True: 0, False: DOES_NOT_HOLD, None: FAILED}


@click.command()
@takes_input
@takes_run
@click.option(
    "--no-compile-after",
    metavar="PHASE",
    help="Nothing compiles in a process from its first trip in this phase on, such as serving.",
)
@click.option(
    "--max-compile-seconds",
    type=click.FloatRange(min=0),
    help="No process compiles for longer, overlaps counted once.",
)
@click.option(
    "--min-load-share",
    type=click.FloatRange(min=0, max=1),
    help="Of the records of each layer at least this share is loaded, from 0 to 1.",
)
@click.option("--layer", "layers", multiple=True, help="Look at this layer only; may be given several times.")
@takes_json
def check(
    spec: str,
    run: str | None,
    no_compile_after: str | None,
    max_compile_seconds: float | None,
    min_load_share: float | None,
    layers: tuple[str, ...],
    as_json: bool,
) -> int:
    """Check the trips of INPUT against what a deployment expects, and end with 1 if they do not keep to it.

    INPUT is a recording, a file or pattern of files of JSON lines, as OTLP or as `export` writes them, or - for
    such lines on standard input; by default the recording of this host.
    """
    expected = Expected(no_compile_after, max_compile_seconds, min_load_share)
    if expected == Expected():
        raise click.UsageError(
            "nothing to check: give --no-compile-after, --max-compile-seconds or --min-load-share"
        )
    problems = Problems()
    with opened(spec, problems, read=reading) as recording:
        wanted = run if run is not None or recording.is_recording else ALL
        chosen = run_of(recording.connection, wanted, recording.name)
        checks = check_run(recording.connection, chosen, recording.name, expected, layers)
    if as_json:
        whole = {**asdict(checks), "holds": checks.holds, **left_out(recording.input)}
        click.echo(json.dumps(whole))
    else:
        from otel_kernel.report.render_checks import print_checks

        print_checks(checks, text_output())
        print_left_out(recording.input)
    return problems.exit_code() or _CODES[checks.holds]
