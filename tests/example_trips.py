"""Trips that tests write down when any will do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from otel_kernel.records import (
    AttributeValue,
    CompilationOutcome,
    KernelCacheKey,
    Session,
    Text,
    Trip,
)

SESSION: Final = Session(id="5" * 32, run="a" * 32)


def other_session(number: int, run: int | None = None) -> Session:
    """Return the session with this number, by default in a run of its own."""
    return Session(id=f"{number:032x}", run=f"{number if run is None else run:032x}")


def a_record(
    seq: int = 0,
    *,
    session: Session = SESSION,
    started_ns: int = 1_700_000_000_000_000_000,
    ir: Text = None,
    source: Text = None,
    attributes: Mapping[str, AttributeValue] | None = None,
) -> Trip:
    """Return a trip that compiled."""
    return Trip(
        session=session,
        seq=seq,
        runtime="numba",
        layer="numba",
        kernel="shop.discount",
        started_ns=started_ns,
        duration_ns=1_000_000,
        outcome=CompilationOutcome.COMPILED,
        key=KernelCacheKey(id=seq, build_id=2**128 - 1),
        ir=ir,
        source=source,
        attributes=attributes or {},
    )


def an_unfinished_trip(
    seq: int = 0, *, session: Session = SESSION, started_ns: int = 1_700_000_000_000_000_000
) -> Trip:
    """Return the trip of `a_record` as it starts."""
    return Trip(
        session=session,
        seq=seq,
        runtime="numba",
        layer="numba",
        kernel="shop.discount",
        started_ns=started_ns,
        duration_ns=None,
    )
