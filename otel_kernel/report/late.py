"""What was compiled when it should have been ready: in a phase such as `serving`, or after it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final

# A process is in the phase from its first trip in it on, also where it names another phase later.
_LATE: Final = """
WITH entered AS (SELECT session, min(started_ns) AS entered_ns FROM scope WHERE phase = ?1 GROUP BY session)
SELECT
    scope.layer, scope.kernel, scope.internal,
    sum(state = 'compiled'), sum(state = 'failed'), sum(state = 'unfinished'),
    CAST(total(max(0, scope.duration_ns - coalesce(children.duration_ns, 0))) AS INTEGER) AS own_ns
FROM scope JOIN entered USING (session) LEFT JOIN children USING (session, seq)
WHERE state IN ('compiled', 'failed', 'unfinished') AND scope.started_ns >= entered_ns
GROUP BY scope.layer, scope.kernel, scope.internal
ORDER BY scope.internal, own_ns DESC, scope.layer, scope.kernel
"""


@dataclass(frozen=True, slots=True)
class LateKernel:
    """A kernel that was not ready."""

    layer: str
    kernel: str
    internal: bool
    """Whether it is a function of a runtime's library."""
    compiled: int
    failed: int
    unfinished: int
    own_ns: int
    """Time of these trips less the time of their child trips of the same layer."""

    @property
    def trips(self) -> int:
        """All these trips."""
        return self.compiled + self.failed + self.unfinished


def late_kernels(connection: sqlite3.Connection, phase: str) -> tuple[LateKernel, ...]:
    """Return what processes compiled, or failed to, or never ended to, from their first trip in a phase on.

    Args:
        connection: a recording, with the tables `scope` and `children`.
        phase: its name.
    """
    return tuple(
        LateKernel(layer, kernel, bool(internal), *numbers)
        for layer, kernel, internal, *numbers in connection.execute(_LATE, (phase,))
    )
