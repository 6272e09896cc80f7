"""Ids of spans that are the same in no two processes."""

from __future__ import annotations

import secrets

from opentelemetry.sdk.trace.id_generator import RandomIdGenerator


class SystemIdGenerator(RandomIdGenerator):
    """Draws ids from the operating system.

    The SDK's own draws them from `random`. Ranks that seed it alike, as those of a model server do, would give
    their spans the same ids, and a program would no more get the numbers that it seeded.
    """

    def generate_span_id(self) -> int:
        """Return 64 bits, not all of them 0."""
        return _not_zero(64)

    def generate_trace_id(self) -> int:
        """Return 128 bits, not all of them 0."""
        return _not_zero(128)


def _not_zero(bits: int) -> int:
    while not (drawn := secrets.randbits(bits)):
        pass
    return drawn
