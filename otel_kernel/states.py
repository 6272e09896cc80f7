"""Which instrumentors are at work and how their points are: told by instrumentors, read by the gauges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Protocol


class Instrumentor(Protocol):
    """What an instrumentor tells of itself."""

    runtime: ClassVar[str]

    def state_of_points(self) -> Mapping[str, int]:
        """Return the number of points by state."""
        ...


_at_work: list[Instrumentor] = []
_over = False


def began(instrumentor: Instrumentor) -> None:
    """Take note that an instrumentor is at work."""
    global _over
    _at_work.append(instrumentor)
    _over = False


def ended(instrumentor: Instrumentor) -> None:
    """Take note that an instrumentor has left its runtime."""
    global _over
    _at_work[:] = [each for each in _at_work if each is not instrumentor]
    _over = not _at_work


def are_over() -> bool:
    """Whether the last instrumentor has left its runtime, so that there is nothing to observe."""
    return _over


def of_points() -> Iterable[tuple[str, str, int]]:
    """Return (runtime, state, number of points) of all instrumentors at work."""
    return [
        (instrumentor.runtime, state, number)
        for instrumentor in _at_work.copy()
        for state, number in instrumentor.state_of_points().items()
    ]
