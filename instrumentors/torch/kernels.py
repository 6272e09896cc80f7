"""The kernels of a graph: which of them were compiled, loaded or in memory."""

from __future__ import annotations

import json
from typing import Final

from otel_kernel import semconv
from otel_kernel.trip import OpenTrip

_NOTE: Final = "kernels"
_MOST_NAMES: Final = 64


class Kernels:
    """What the probes inside a graph's trip have seen of its kernels."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.compiled = 0

    @property
    def count(self) -> int:
        """Kernels that the graph has asked for."""
        return len(self.names)

    def tell(self, trip: OpenTrip) -> None:
        """Write on the trip of the graph what its kernels are."""
        if self.names:
            trip.set(semconv.MEMBERS_COUNT, self.count)
            trip.set(semconv.MEMBERS_NAMES, json.dumps(self.names[:_MOST_NAMES]))


def kernels_of(trip: OpenTrip) -> Kernels:
    """Return the kernels of a graph, which probes and the reader of its trip share."""
    known = trip.notes.get(_NOTE)
    if not isinstance(known, Kernels):
        known = trip.notes[_NOTE] = Kernels()
    return known
