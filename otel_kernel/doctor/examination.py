"""All areas, one after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from otel_kernel.doctor import endpoints, packages, recordings, runtimes, starts
from otel_kernel.doctor.findings import Finding


def examine(names: Iterable[str], otlp: str | None) -> Iterator[Finding]:
    """Yield what is found, area by area.

    Args:
        names: top modules of the runtimes to look at.
        otlp: endpoint to look at instead of those in the environment.
    """
    yield from runtimes.look(names)
    yield from recordings.look()
    yield from starts.look()
    yield from packages.look()
    yield from endpoints.look(otlp)
