"""`otel-kernel explain`."""

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
    takes_text_files,
    text_output,
)
from otel_kernel.report.explanation import explain_kernel, explain_trip, explanation_json
from otel_kernel.report.opening import opened
from otel_kernel.report.scope import ALL, run_of
from otel_kernel.texts import TextFiles


@click.command()
@click.argument("kernel", metavar="KERNEL")
@takes_input
@takes_run
@takes_json
@takes_text_files
def explain(kernel: str, spec: str, run: str | None, as_json: bool, texts: TextFiles | None) -> int:
    """Say why a kernel was compiled: what has changed since an earlier trip, or what the store did.

    KERNEL is the name of a kernel, of which the trips in the run are explained, or one trip as SESSION:SEQ, as
    `list` prints it. Trips of all earlier runs in INPUT count as earlier.

    INPUT is a recording, a file or pattern of files of JSON lines, as OTLP or as `export` writes them, or - for
    such lines on standard input; by default the recording of this host.
    """
    problems = Problems()
    with opened(spec, problems, texts=texts, read=reading) as recording:
        explanation = explain_trip(recording.connection, kernel, recording.name)
        if explanation is None:
            wanted = run if run is not None or recording.is_recording else ALL
            in_run = run_of(recording.connection, wanted, recording.name)
            explanation = explain_kernel(recording.connection, kernel, in_run, recording.name)
    if as_json:
        click.echo(json.dumps({**explanation_json(explanation), **left_out(recording.input)}))
    else:
        from otel_kernel.report.render_explanation import print_explanation

        print_explanation(explanation, text_output())
        print_left_out(recording.input)
    return problems.exit_code()
