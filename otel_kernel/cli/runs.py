"""`otel-kernel runs`."""

from __future__ import annotations

import json

import click

from otel_kernel.cli.progress import reading
from otel_kernel.cli.reading import Problems, left_out, print_left_out, takes_input, takes_json, text_output
from otel_kernel.report.opening import opened
from otel_kernel.report.runs import list_runs


@click.command()
@takes_input
@takes_json
def runs(spec: str, as_json: bool) -> int:
    """List the runs of INPUT, the newest first: what came of their trips, and whether they still run.

    INPUT is a recording, a file or pattern of files of JSON lines, as OTLP or as `export` writes them, or - for
    such lines on standard input; by default the recording of this host.
    """
    problems = Problems()
    with opened(spec, problems, read=reading) as recording:
        found = list_runs(recording.connection)
    if as_json:
        click.echo(json.dumps({"runs": [run.to_json() for run in found], **left_out(recording.input)}))
    else:
        from otel_kernel.report.render_runs import print_runs

        print_runs(found, text_output())
        print_left_out(recording.input)
    return problems.exit_code()
