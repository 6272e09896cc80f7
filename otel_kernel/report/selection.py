"""The trips of an INPUT that a command is about, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from contextlib import closing
from pathlib import Path

from otel_kernel.inputs import Input, InputError, Problem
from otel_kernel.kinds import Stamped, kind_of
from otel_kernel.recording.reader import connect_readonly, read_trips
from otel_kernel.records import CompilationRecord, Trip
from otel_kernel.report.scope import ALL, run_of


def selected(found: Input, run: str | None, name: str) -> Iterator[Trip | Problem]:
    """Yield the trips of one run or of all, and the problems in between.

    Args:
        found: the INPUT.
        run: the id of a run or its start, `all`, or None for the latest run of a recording and all of any
            other INPUT.
        name: how an error calls the INPUT.

    Raises:
        InputError: there is no such run, or there are several.
        RecordingError: the INPUT is a recording and cannot be read.
    """
    path = found.recording
    if path is not None:
        with closing(connect_readonly(path)) as connection:
            wanted = run_of(connection, run, name)
        yield from read_trips(path, wanted)
    elif run is None or run == ALL:
        yield from found
    else:
        yield from _only_trips(_of_run(found, run, name))


def number_of_trips(path: Path, run: str | None, name: str) -> int:
    """Return how many trips `selected` yields of a recording."""
    with closing(connect_readonly(path)) as connection:
        wanted = run_of(connection, run, name)
        number: int = connection.execute(
            "SELECT count(*) FROM trips WHERE ?1 IS NULL OR session IN (SELECT id FROM sessions WHERE run = ?1)",
            (wanted,),
        ).fetchone()[0]
        return number


def selected_of_kinds(
    found: Input, run: str | None, name: str, kinds: Set[str] | None
) -> Iterator[Trip | Stamped | Problem]:
    """Yield the records of some kinds of one run or of all, as `selected` does the trips.

    Args:
        found: the INPUT.
        run: as in `selected`.
        name: how an error calls the INPUT.
        kinds: those to yield; None yields all.

    Raises:
        InputError: there is no such run, or there are several.
        RecordingError: the INPUT is a recording and cannot be read.
    """
    if kinds == {CompilationRecord.KIND} or found.recording is not None:
        trips = kinds is None or CompilationRecord.KIND in kinds
        yield from (each for each in selected(found, run, name) if trips or isinstance(each, Problem))
        return
    records = found.all() if run is None or run == ALL else _of_run(found.all(), run, name)
    for each in records:
        kind = CompilationRecord.KIND if isinstance(each, Trip) else None
        if isinstance(each, Stamped):
            kind = kind_of(each.record)
        if kind is None or kinds is None or kind in kinds:
            yield each


def _only_trips(records: Iterable[Trip | Stamped | Problem]) -> Iterator[Trip | Problem]:
    return (each for each in records if not isinstance(each, Stamped))


def _of_run(
    found: Iterable[Trip | Stamped | Problem], run: str, name: str
) -> Iterator[Trip | Stamped | Problem]:
    none = True
    for each in found:
        if isinstance(each, Problem):
            yield each
        elif each.session.run.startswith(run):
            none = False
            yield each
    if none:
        raise InputError(f"no run {run} in {name}")
