"""What to compile before a program serves: the specializations that it compiled while it served."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Final

from otel_kernel.inputs import InputError
from otel_kernel.report.history import COMPONENTS
from otel_kernel.report.kernels import Kernel
from otel_kernel.report.words import count

SERVING: Final = "serving"

# A kernel that was compiled inside another that is listed comes with that one.
_COMPILED: Final = f"""
WITH compiled AS MATERIALIZED (
    SELECT trips.*, {COMPONENTS} AS components, sessions.host
    FROM trips JOIN sessions ON sessions.id = trips.session
    WHERE outcome = 'compiled' AND (?1 IS NULL OR run = ?1) AND (?2 IS NULL OR phase = ?2)
)
SELECT
    runtime, layer, kernel, coalesce(internal, 0), specialization, target,
    count(*), count(DISTINCT session), CAST(total(duration_ns) AS INTEGER),
    code_function_name, code_file_path, code_line_number, identity, components, max(started_ns)
FROM compiled
WHERE NOT EXISTS (
    SELECT 1 FROM compiled AS outer_trip
    WHERE outer_trip.session = compiled.session AND outer_trip.seq = compiled.parent_seq
)
GROUP BY runtime, layer, kernel, specialization, target
ORDER BY runtime, layer, kernel, total(duration_ns) DESC, specialization
"""

_PHASES: Final = """
SELECT phase, count(*) FROM trips JOIN sessions ON sessions.id = trips.session
WHERE outcome IS NOT NULL AND (?1 IS NULL OR run = ?1)
GROUP BY phase ORDER BY count(*) DESC
"""


@dataclass(frozen=True, slots=True)
class Specialization:
    """One specialization of a kernel that was compiled."""

    specialization: str | None
    """As the runtime's instrumentor writes it; None where it has none."""
    target: str | None
    identity: str | None
    trips: int
    """How often it was compiled."""
    processes: int
    duration_ns: int
    """Time of these trips, added up."""
    components: dict[str, str]
    """Key components of the last of them: its signature, constants and options, where they are parts of the key."""


@dataclass(frozen=True, slots=True)
class WarmupKernel:
    """A kernel and what of it was compiled."""

    kernel: Kernel
    function: str | None
    file: str | None
    line: int | None
    specializations: tuple[Specialization, ...]
    """Those that took most time first."""

    @property
    def duration_ns(self) -> int:
        """Time of all their trips, added up."""
        return sum(each.duration_ns for each in self.specializations)


@dataclass(frozen=True, slots=True)
class WarmupList:
    """What to compile before serving."""

    phase: str | None
    """The phase that was looked at; None for all trips."""
    kernels: tuple[WarmupKernel, ...]
    """Those that took most time first."""
    internal: int
    """Functions of the runtimes' own libraries that were compiled by themselves, such as eager operations."""


def warmup_list(connection: sqlite3.Connection, run: str | None, phase: str | None, name: str) -> WarmupList:
    """Return what was compiled in a phase.

    Args:
        connection: a recording.
        run: the run, or None for all.
        phase: the phase, or None for all trips.
        name: how an error calls the recording.

    Raises:
        InputError: no record has this phase, so that nothing could be said.
    """
    if phase is not None:
        _check_phase(connection, run, phase, name)
    kernels: list[WarmupKernel] = []
    internal = 0
    rows = connection.execute(_COMPILED, (run, phase))
    for names, group in groupby(rows, key=lambda row: row[:3]):
        members = list(group)
        if members[0][3]:
            internal += 1
            continue
        function, file, line = members[-1][9:12]
        kernels.append(
            WarmupKernel(
                Kernel(*names),
                function,
                file,
                line,
                tuple(_specialization(row) for row in members),
            )
        )
    kernels.sort(key=lambda each: (-each.duration_ns, each.kernel))
    return WarmupList(phase, tuple(kernels), internal)


def _specialization(row: tuple[Any, ...]) -> Specialization:
    _, _, _, _, specialization, target, trips, processes, duration_ns, _, _, _, identity, components, _ = row
    return Specialization(
        specialization,
        target,
        identity,
        trips,
        processes,
        duration_ns,
        {name: str(value) for name, value in json.loads(components).items()},
    )


def _check_phase(connection: sqlite3.Connection, run: str | None, phase: str, name: str) -> None:
    phases = dict(connection.execute(_PHASES, (run,)).fetchall())
    if phase in phases or not phases:
        return
    known = [f"{each} ({count(number, 'record')})" for each, number in phases.items() if each is not None]
    what = (
        f"its phases are {', '.join(known)}: name one with --phase"
        if known
        else "none of its records has a phase: set OTEL_KERNEL_SERVING_AFTER or call otel_kernel.phase, or take all "
        "trips with --phase all"
    )
    raise InputError(f"no record of phase {phase} in {name}: {what}")


def warmup_json(found: WarmupList) -> dict[str, Any]:
    """Return the list as `schemas/warmup-list.schema.json` has it."""
    return {
        "phase": found.phase,
        "kernels": [
            {
                **each.kernel._asdict(),
                "function": each.function,
                "file": each.file,
                "line": each.line,
                "duration_ns": each.duration_ns,
                "specializations": [asdict(one) for one in each.specializations],
            }
            for each in found.kernels
        ],
        "internal": found.internal,
    }
