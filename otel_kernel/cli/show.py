"""`otel-kernel show`."""

from __future__ import annotations

import json

import click

from otel_kernel.cli.progress import reading
from otel_kernel.cli.reading import Problems, takes_input, takes_json, takes_text_files, text_output
from otel_kernel.report.details import print_trip
from otel_kernel.report.lookup import find_trip
from otel_kernel.report.opening import opened
from otel_kernel.texts import TextFiles


@click.command()
@click.argument("trip", metavar="TRIP")
@takes_input
@takes_json
@takes_text_files
def show(trip: str, spec: str, as_json: bool, texts: TextFiles | None) -> int:
    """Show all that is known of one trip.

    TRIP is SESSION:SEQ as `list` prints it, or the name of a kernel for its newest trip.

    INPUT is a recording, a file or pattern of files of JSON lines, as OTLP or as `export` writes them, or - for
    such lines on standard input; by default the recording of this host.
    """
    problems = Problems()
    with opened(spec, problems, texts=texts, read=reading) as recording:
        found = find_trip(recording.connection, trip, recording.name)
    if as_json:
        click.echo(json.dumps(found.to_json()))
    else:
        print_trip(found, text_output())
    return problems.exit_code()
