"""`otel-kernel prune`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click

from otel_kernel.cli.progress import shown
from otel_kernel.cli.reading import default_input, takes_json
from otel_kernel.recording.errors import explained
from otel_kernel.recording.file import connect_writer, real_path
from otel_kernel.recording.pruning import KEPT, old_runs, remove_lonely_texts, remove_run
from otel_kernel.recording.reader import connect_readonly
from otel_kernel.report.words import count, size


@click.command()
@click.argument("recording", metavar="[RECORDING]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    default=KEPT,
    show_default=True,
    help="How many of the newest runs stay.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@takes_json
def prune(recording: Path | None, keep: int, dry_run: bool, as_json: bool) -> None:
    """Remove all but the newest runs of RECORDING, by default that of this host; `run` does so when it ends.

    A run with a live process stays. So does the size of the file: the room is used for what is recorded next. To
    shrink it, run `sqlite3 RECORDING VACUUM` while nothing is recorded.
    """
    path = real_path(recording or Path(default_input()))
    connect_readonly(path).close()  # says what is wrong with it, and makes none
    with explained(path), closing(connect_readonly(path) if dry_run else connect_writer(path)) as connection:
        old = old_runs(connection, keep)
        if old and not dry_run:
            for run in shown(old, "removing runs", lambda: len(old)):
                remove_run(connection, run)
            remove_lonely_texts(connection)
        kept: int = connection.execute("SELECT count(DISTINCT run) FROM sessions").fetchone()[0]
        page, pages, free = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_size", "page_count", "freelist_count")
        )
    if dry_run:
        kept -= len(old)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "recording": str(path),
                    "removed": old,
                    "kept": kept,
                    "dry_run": dry_run,
                    "free_bytes": free * page,
                    "size_bytes": pages * page,
                }
            )
        )
    else:
        _say(path, old, kept, dry_run, free * page, pages * page)


def _say(path: Path, old: Sequence[str], kept: int, dry_run: bool, free: int, whole: int) -> None:
    if old:
        removed = "would be removed" if dry_run else "removed"
        click.echo(f"{count(len(old), 'run')} {removed}, the newest first:")
        for run in old:
            click.echo(f"  {run}")
    else:
        click.echo("No run to remove.")
    click.echo(f"{count(kept, 'run')} in {path}: {size(whole)}, of which {size(free)} are free")
