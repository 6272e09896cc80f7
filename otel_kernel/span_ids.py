"""Ids of spans that do not come from the random numbers of the program.

The SDK draws ids from Python's global generator. A program that seeds it would see other numbers with us than
without us. Ranks that seed it alike, as those of a model server do, would get spans with the same ids, and so would
a runtime that rewinds it, as Dynamo does after it has compiled a frame.
"""

from __future__ import annotations

import random
from typing import Any

from opentelemetry.trace import Tracer

_system = random.SystemRandom()  # has no state that a fork could copy


class OwnIds:
    """Stands in for the SDK's own generator of ids in a tracer of ours."""

    def __init__(self, given: object) -> None:
        self._given = given

    def generate_span_id(self) -> int:
        """Return 64 random bits, not all of them 0."""
        return _system.getrandbits(64) or 1

    def generate_trace_id(self) -> int:
        """Return 128 random bits, not all of them 0."""
        return _system.getrandbits(128) or 1

    def __getattr__(self, name: str) -> Any:
        """Return what else a generator has: newer SDKs ask whether its ids are random."""
        return getattr(self._given, name)


def draw_own_ids(tracer: Tracer) -> None:
    """Let a tracer, which must be ours alone, draw its ids from the system, unless the program chose how."""
    given: object = getattr(tracer, "id_generator", None)
    kind = type(given)
    if (kind.__module__, kind.__name__) == ("opentelemetry.sdk.trace.id_generator", "RandomIdGenerator"):
        tracer.id_generator = OwnIds(given)  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue] - of the SDK's tracers
