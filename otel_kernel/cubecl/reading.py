"""An environment as an INPUT."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from otel_kernel.cubecl.environment import opened
from otel_kernel.cubecl.trips import to_ours
from otel_kernel.inputs.problems import Problem
from otel_kernel.kinds import Stamped
from otel_kernel.records import Trip


def read_environment(path: Path) -> Iterator[Trip | Stamped | Problem]:
    """Yield all records of an environment in order, trips and others, and a problem for each one that is lost.

    Raises:
        InputError: it cannot be read at all.
    """
    with opened(path) as environment:
        yield from environment.problems
        for row in environment.rows():
            if isinstance(row, Problem):
                yield row
                continue
            try:
                yield to_ours(row, environment.sessions.get(row.session))
            except ValueError as error:
                yield Problem(f"{path}: [{row.session}, {row.seq}]", str(error))
