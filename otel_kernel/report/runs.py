"""The runs of a recording, one by one."""

from __future__ import annotations

import sqlite3
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple

from otel_kernel.recording.processes import ProcessId, is_alive
from otel_kernel.report import queries
from otel_kernel.report.summary import COUNTED, Counts

_SESSIONS: Final = f"""
SELECT
    run, sessions.started_ns, host, program, pid, pid_space, process_start,
    coalesce(ends.last_ns, sessions.started_ns), coalesce(spent.spent_ns, 0),
    {", ".join(f"coalesce(ends.{state}, 0)" for state in COUNTED)}
FROM sessions
LEFT JOIN (
    SELECT
        session, CAST(max(started_ns + coalesce(duration_ns, 0)) AS INTEGER) AS last_ns,
        {", ".join(f"sum(state = '{state}') AS {state}" for state in COUNTED)}
    FROM scope
    GROUP BY session
) AS ends ON ends.session = sessions.id
LEFT JOIN ({queries.SESSIONS_SPENT}) AS spent ON spent.session = sessions.id
ORDER BY run, sessions.started_ns, sessions.id
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One start of a program with all its processes."""

    run: str
    started_ns: int
    """Start of its first trip, ns since the Unix epoch."""
    last_ns: int
    """End of its last trip, or the start of one that has not ended."""
    host: str | None
    """Of the process that had the first trip, as is `program`."""
    program: str | None
    processes: int
    live: bool | None
    """Whether a process of it lives; None where that cannot be seen from here."""
    counts: Counts
    spent_ns: int
    """Union of the intervals of all trips in each process, summed over processes."""

    def to_json(self) -> dict[str, Any]:
        """Return the run as `schemas/runs.schema.json` describes it."""
        fields = asdict(self)
        del fields["counts"]
        return {**fields, "trips": self.counts.trips, **asdict(self.counts)}


class _Session(NamedTuple):
    """A process of a run."""

    run: str
    started_ns: int
    host: str | None
    program: str | None
    pid: int | None
    pid_space: str | None
    process_start: int | None
    last_ns: int
    spent_ns: int
    counts: Counts

    @property
    def live(self) -> bool | None:
        """Whether the process lives."""
        if self.pid is None:
            return None
        return is_alive(ProcessId(self.pid, self.pid_space, self.process_start))


_KNOWN: Final = len(_Session._fields) - 1


def list_runs(connection: sqlite3.Connection) -> tuple[Run, ...]:
    """Return all runs, the one that started last first.

    Args:
        connection: a recording, in a transaction; a temporary table stays behind.
    """
    queries.prepare_scope(connection, None)
    rows = connection.execute(_SESSIONS)
    sessions = (_Session._make((*row[:_KNOWN], Counts(*row[_KNOWN:]))) for row in rows)
    runs = [_run(list(group)) for _, group in groupby(sessions, key=lambda session: session.run)]
    return tuple(sorted(runs, key=lambda run: (-run.started_ns, run.run)))


def _run(sessions: list[_Session]) -> Run:
    """Return the run of these sessions, the first of which has started first."""
    first = sessions[0]
    lives = {session.live for session in sessions}
    return Run(
        run=first.run,
        started_ns=first.started_ns,
        last_ns=max(session.last_ns for session in sessions),
        host=first.host,
        program=first.program,
        processes=len(sessions),
        live=True if True in lives else None if None in lives else False,
        counts=sum((session.counts for session in sessions), Counts()),
        spent_ns=sum(session.spent_ns for session in sessions),
    )
