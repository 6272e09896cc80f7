"""`otel-kernel report`."""

from __future__ import annotations

import json

import click

from otel_kernel.cli.progress import reading
from otel_kernel.cli.reading import Problems, takes_input, takes_json, takes_run, text_output
from otel_kernel.inputs import Input
from otel_kernel.report.opening import opened
from otel_kernel.report.scope import ALL, run_of
from otel_kernel.report.summary import Summary, summarize


@click.command()
@takes_input
@takes_run
@takes_json
def report(spec: str, run: str | None, as_json: bool) -> int:
    """Summarize the trips of INPUT: what took the time, what the store saved, what failed.

    INPUT is a recording, a file or pattern of files of JSON lines, as OTLP or as `export` writes them, or - for
    such lines on standard input; by default the recording of this host.
    """
    problems = Problems()
    with opened(spec, problems, read=reading) as recording:
        wanted = run if run is not None or recording.is_recording else ALL
        summary = summarize(recording.connection, run_of(recording.connection, wanted, recording.name))
    if as_json:
        _print_json(summary, recording.input)
    else:
        _print(summary, recording.input)
    return problems.exit_code()


def _print_json(summary: Summary, found: Input) -> None:
    from otel_kernel.report.as_json import report_json

    left_out = {
        "problems": found.problems,
        "duplicates": found.duplicates,
        "other_spans": found.other_spans,
    }
    click.echo(json.dumps({**report_json(summary), **left_out}))


def _print(summary: Summary, found: Input) -> None:
    from otel_kernel.report.render import print_summary
    from otel_kernel.report.words import count

    print_summary(summary, text_output())
    if found.duplicates or found.other_spans:
        others = count(found.other_spans, "span that is no trip", "spans that are no trips")
        click.echo(f"\nLeft out: {others}, {count(found.duplicates, 'duplicate')}.")
