"""Whether a run keeps to what a deployment expects of it."""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from otel_kernel.inputs import InputError
from otel_kernel.recording.processes import ProcessId, is_alive
from otel_kernel.report import queries
from otel_kernel.report.intervals import Interval, length, union
from otel_kernel.report.late import LateKernel, late_kernels
from otel_kernel.report.words import count, duration, share

_UNPHASED: Final = """
SELECT count(DISTINCT session), count(*)
FROM scope
WHERE state IN ('compiled', 'failed', 'unfinished')
AND session NOT IN (SELECT session FROM scope WHERE phase IS NOT NULL)
"""

_PHASES: Final = "SELECT DISTINCT phase FROM scope WHERE phase IS NOT NULL ORDER BY phase"

_COMPILING: Final = """
SELECT
    session, coalesce(trips.process_pid, sessions.pid), scope.started_ns, scope.started_ns + scope.duration_ns,
    sessions.pid_space, sessions.process_start
FROM scope CROSS JOIN trips USING (session, seq) JOIN sessions ON sessions.id = scope.session
WHERE state IN ('compiled', 'failed', 'unfinished')
"""

_SHARES: Final = """
SELECT layer, total(state = 'loaded') / count(*) AS loaded_share
FROM scope
WHERE state IN ('compiled', 'loaded', 'rekeyed')
GROUP BY layer
ORDER BY loaded_share, layer
"""


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected; None where nothing is."""

    no_compile_after: str | None = None
    """Phase from which on nothing compiles."""
    max_compile_seconds: float | None = None
    """Time that each process may compile."""
    min_load_share: float | None = None
    """Share of the records of each layer that are loaded, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Check:
    """What came of one expectation."""

    check: str
    """`no_compile_after`, `max_compile_seconds` or `min_load_share`."""
    limit: str | float
    """The phase, the seconds or the share."""
    found: float | None
    """How many compiled, how many seconds in the process that compiled longest, the least share of a layer."""
    holds: bool | None
    """None where that cannot be told."""
    reason: str
    """What was found, in words."""
    kernels: tuple[LateKernel, ...] = ()
    """What compiled after the phase had begun, by own time."""


@dataclass(frozen=True, slots=True)
class Checks:
    """All checks of a run."""

    run: str | None
    """The run; None for all."""
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool | None:
        """Whether all hold; None where that cannot be told."""
        results = {check.holds for check in self.checks}
        if False in results:
            return False
        return None if None in results else True


def check_run(
    connection: sqlite3.Connection, run: str | None, name: str, expected: Expected, layers: Sequence[str] = ()
) -> Checks:
    """Check a run.

    Args:
        connection: a recording, in a transaction; temporary tables stay behind.
        run: the run, or None for all.
        name: how an error calls the recording.
        expected: what is checked.
        layers: the layers to look at; all by default.

    Raises:
        InputError: there is nothing to check.
    """
    queries.prepare_own_times(connection, run)
    _narrow(connection, name, layers)
    checks: list[Check] = []
    if expected.no_compile_after is not None:
        checks.append(_no_compile_after(connection, expected.no_compile_after))
    if expected.max_compile_seconds is not None:
        checks.append(_max_compile_seconds(connection, expected.max_compile_seconds))
    if expected.min_load_share is not None:
        checks.append(_min_load_share(connection, expected.min_load_share))
    return Checks(run, tuple(checks))


def _narrow(connection: sqlite3.Connection, name: str, layers: Sequence[str]) -> None:
    found = [layer for (layer,) in connection.execute("SELECT DISTINCT layer FROM scope ORDER BY layer")]
    if not found:
        raise InputError(f"no trips in {name}: nothing can be checked")
    unknown = [layer for layer in layers if layer not in found]
    if unknown:
        raise InputError(f"no trip of layer {unknown[0]} in {name}: its layers are {', '.join(found)}")
    if layers:
        places = ", ".join("?" * len(layers))
        connection.execute(f"DELETE FROM scope WHERE layer NOT IN ({places})", tuple(layers))


def _no_compile_after(connection: sqlite3.Connection, phase: str) -> Check:
    kernels = late_kernels(connection, phase)
    trips = sum(kernel.trips for kernel in kernels)
    phases = [name for (name,) in connection.execute(_PHASES)]
    processes, unphased = connection.execute(_UNPHASED).fetchone()
    holds: bool | None = not trips
    if trips:
        reason = f"{count(trips, 'trip')} compiled"
    elif not phases:
        holds = None
        reason = (
            "no trip tells its phase: set OTEL_KERNEL_SERVING_AFTER, or call otel_kernel.phase() at the start "
            "of each process too"
        )
    elif unphased:
        holds = None
        reason = (
            f"{count(processes, 'process', 'processes')} compiled {count(unphased, 'kernel')} and told no phase: "
            "set OTEL_KERNEL_SERVING_AFTER, or call otel_kernel.phase() there too"
        )
    else:
        reason = f"nothing compiled; the trips are of phase {', '.join(phases)}"
    return Check("no_compile_after", phase, trips, holds, reason, kernels)


def _max_compile_seconds(connection: sqlite3.Connection, limit: float) -> Check:
    now = time.time_ns()
    known: int = connection.execute(
        "SELECT max(started_ns + coalesce(duration_ns, 0)) FROM scope"
    ).fetchone()[0]
    compiling: dict[tuple[str, int | None], list[Interval]] = defaultdict(list)
    for session, pid, started_ns, ended_ns, space, start in connection.execute(_COMPILING):
        if ended_ns is None:  # it took at least until the last thing that is known, or takes still
            lives = pid is not None and is_alive(ProcessId(pid, space, start))
            ended_ns = now if lives else known
        compiling[session, pid].append((started_ns, ended_ns))
    times = {process: length(union(intervals)) for process, intervals in compiling.items()}
    if not times:
        return Check("max_compile_seconds", limit, 0, True, "nothing compiled")
    longest = max(times, key=lambda process: times[process])
    _, pid = longest
    ns = times[longest]
    where = "a process" if pid is None else f"pid {pid}"
    reason = f"{where} compiled for {duration(ns)}"
    if len(times) > 1:
        reason += f", the longest of {len(times)} processes"
    return Check("max_compile_seconds", limit, ns / 1e9, ns <= limit * 1e9, reason)


def _min_load_share(connection: sqlite3.Connection, limit: float) -> Check:
    shares = connection.execute(_SHARES).fetchall()
    if not shares:
        return Check("min_load_share", limit, None, None, "no trip was compiled, loaded or rekeyed")
    layer, least = shares[0]
    reason = f"{share(least)} of {layer} loaded"
    if len(shares) > 1:
        reason += f", the least of {len(shares)} layers"
    return Check("min_load_share", limit, least, least >= limit, reason)
