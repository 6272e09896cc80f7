"""`otel-kernel warmup-list`."""

from __future__ import annotations

import json

import click

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
from otel_kernel.report.opening import opened
from otel_kernel.report.scope import ALL, run_of
from otel_kernel.report.warmup import SERVING, warmup_json, warmup_list


@click.command("warmup-list")
@takes_input
@takes_run
@click.option(
    "--phase",
    metavar="NAME|all",
    default=SERVING,
    show_default=True,
    help="What was compiled in this phase, or in all.",
)
@takes_json
def warmup(spec: str, run: str | None, phase: str, as_json: bool) -> int:
    """List what to compile before serving: the specializations of each kernel that were compiled while serving.

    A kernel that was compiled inside another one that is listed is left out, and functions of the runtimes'
    libraries are only counted.

    INPUT is a recording, a file or pattern of files of JSON lines, as OTLP or as `export` writes them, or - for
    such lines on standard input; by default the recording of this host.
    """
    problems = Problems()
    with opened(spec, problems, read=reading) as recording:
        wanted = run if run is not None or recording.is_recording else ALL
        in_run = run_of(recording.connection, wanted, recording.name)
        found = warmup_list(recording.connection, in_run, None if phase == ALL else phase, recording.name)
    if as_json:
        click.echo(json.dumps({**warmup_json(found), **left_out(recording.input)}))
    else:
        from otel_kernel.report.render_warmup import print_warmup_list

        print_warmup_list(found, text_output())
        print_left_out(recording.input)
    return problems.exit_code()
