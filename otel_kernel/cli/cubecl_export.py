"""`otel-kernel export --cubecl`."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import click

from otel_kernel.cli.reading import Problems
from otel_kernel.inputs import Input, Problem
from otel_kernel.recording.reader import connect_readonly
from otel_kernel.records import Trip
from otel_kernel.report.words import count


def export_environment(path: Path, found: Input, trips: Iterable[Trip | Problem], problems: Problems) -> None:
    """Write the records among trips into a new CubeCL environment, and say what was left out and why."""
    from otel_kernel.cubecl.environment import sessions_of
    from otel_kernel.cubecl.writing import Process, write_environment

    processes: dict[str, Process] = {}
    if found.recording is not None:
        here, arch = os.uname().nodename, platform.machine()
        with closing(connect_readonly(found.recording)) as connection:
            for session, started_ns, host, pid, program in connection.execute(
                "SELECT id, started_ns, host, pid, program FROM sessions"
            ):
                known = {"os": platform.system().lower(), "arch": arch} if host == here else {}
                processes[session] = Process(started_ns, pid, program, **known)
    sessions = {} if found.environment is None else sessions_of(found.environment)
    written = write_environment(path, _only_trips(trips, problems), processes, sessions)
    click.echo(f"{count(written.records, 'record')} of {count(written.sessions, 'session')} in {path}")
    if written.left_out:
        reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(written.left_out.items()))
        click.echo(
            f"Left out {count(written.left_out.total(), 'trip')} that CubeCL has no place for: {reasons}."
        )
    if written.texts:
        click.echo(f"Without {count(written.texts, 'text')}, of which INPUT holds a digest or a part.")


def _only_trips(trips: Iterable[Trip | Problem], problems: Problems) -> Iterator[Trip]:
    for each in trips:
        if isinstance(each, Problem):
            problems(each)
        else:
            yield each
