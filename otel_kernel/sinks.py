"""Where trips go besides spans."""

from __future__ import annotations

from typing import Protocol

from otel_kernel.records import Trip


class Sink(Protocol):
    """Takes every trip of the process, whatever the sampler decides about its span.

    Both methods run on the compiling thread, inside the core's guard: an exception is logged once and
    never reaches the program. Unless `wants_start` is true only `finished` is called.
    """

    wants_start: bool

    def started(self, trip: Trip) -> None:
        """Take note of an unfinished trip; `finished` follows with the same session and seq, if at all."""
        ...

    def finished(self, trip: Trip) -> None:
        """Take the trip as it ended."""
        ...
