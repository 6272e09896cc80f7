"""`otel-kernel import`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from otel_kernel.cli.progress import reading
from otel_kernel.cli.reading import Problems, print_left_out, takes_text_files
from otel_kernel.inputs import Input, Problem, open_input
from otel_kernel.recording.errors import RefusedTripError
from otel_kernel.recording.file import create_or_check, default_path
from otel_kernel.recording.writer import RecordingSink
from otel_kernel.report.words import count
from otel_kernel.texts import TextFiles


@click.command("import")
@click.argument("specs", metavar="INPUT...", nargs=-1, required=True)
@click.option(
    "--recording",
    type=click.Path(path_type=Path),
    help="File to write to, which may hold other trips already; by default that of this host.",
)
@takes_text_files
def import_trips(specs: tuple[str, ...], recording: Path | None, texts: TextFiles | None) -> int:
    """Write all trips of each INPUT to a recording.

    An INPUT is a recording, a file or pattern of files of OTLP or of JSON lines, the URL of a backend, or - for
    such content on standard input. A trip that is in the recording already is replaced by the same, so that an
    import can be repeated.
    """
    path = recording or default_path()
    inputs = [open_input(spec, texts=texts) for spec in specs]
    if any(each.recording is not None and _is_same(each.recording, path) for each in inputs):
        raise click.UsageError(f"{path} would be imported into itself: name another --recording")
    problems = Problems()
    create_or_check(path)
    with closing(RecordingSink(path, foreign=True)) as sink:
        for each in inputs:
            _import(each, sink, problems)
    click.echo(f"{count(sum(each.trips for each in inputs), 'trip')} in {path}")
    print_left_out(*inputs)
    return problems.exit_code()


def _import(found: Input, sink: RecordingSink, problems: Problems) -> None:
    for each in reading(found):
        if isinstance(each, Problem):
            problems(each)
            continue
        try:
            if each.duration_ns is None:
                sink.started(each)
            else:
                sink.finished(each)
        except RefusedTripError as error:
            found.trips -= 1
            problems(Problem("", str(error)))


def _is_same(one: Path, other: Path) -> bool:
    return other.exists() and one.samefile(other)
