"""`otel-kernel report`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Final

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
from otel_kernel.report.opening import Opened, opened
from otel_kernel.report.ranks import by_rank
from otel_kernel.report.scope import ALL, run_of
from otel_kernel.report.stores import by_store
from otel_kernel.report.summary import summarize


@click.command()
@takes_input
@takes_run
@click.option(
    "--by",
    type=click.Choice(["rank", "store"]),
    help="Compare the ranks of a job instead: who compiled the same kernel, who loaded it, who waited for whom; or "
    "the stores: what each gave, what it took, and why it did not.",
)
@takes_json
def report(spec: str, run: str | None, by: str | None, as_json: bool) -> int:
    """Summarize the trips of INPUT: what took the time, what the store saved, what failed.

    INPUT is a recording, a file or pattern of files of JSON lines, as OTLP or as `export` writes them, or - for
    such lines on standard input; by default the recording of this host.
    """
    problems = Problems()
    with opened(spec, problems, read=reading) as recording:
        wanted = run if run is not None or recording.is_recording else ALL
        chosen = run_of(recording.connection, wanted, recording.name)
        _REPORTS[by](recording, chosen, as_json)
    if not as_json:
        print_left_out(recording.input)
    return problems.exit_code()


def _report(recording: Opened, run: str | None, as_json: bool) -> None:
    summary = summarize(recording.connection, run)
    if as_json:
        from otel_kernel.report.as_json import report_json

        click.echo(json.dumps({**report_json(summary), **left_out(recording.input)}))
    else:
        from otel_kernel.report.render import print_summary

        print_summary(summary, text_output())


def _report_ranks(recording: Opened, run: str | None, as_json: bool) -> None:
    ranks = by_rank(recording.connection, run, recording.name)
    if as_json:
        from otel_kernel.report.ranks_json import ranks_json

        click.echo(json.dumps({**ranks_json(ranks), **left_out(recording.input)}))
    else:
        from otel_kernel.report.render_ranks import print_ranks

        print_ranks(ranks, text_output())


def _report_stores(recording: Opened, run: str | None, as_json: bool) -> None:
    stores = by_store(recording.connection, run)
    if as_json:
        click.echo(json.dumps({**asdict(stores), **left_out(recording.input)}))
    else:
        from otel_kernel.report.render_stores import print_stores

        print_stores(stores, text_output())


_REPORTS: Final = {None: _report, "rank": _report_ranks, "store": _report_stores}
"""By the option `--by`."""
