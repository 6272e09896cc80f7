"""A small run of a shop, of which every number in a report is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from otel_kernel import semconv
from otel_kernel.records import (
    Abandoned,
    AttributeValue,
    CompilationOutcome,
    KernelCacheKey,
    Session,
    Trip,
)

COMPILED, LOADED, REKEYED = CompilationOutcome
EARLIER: Final = Session(id="e" * 32, run="1" * 32)
WEB: Final = Session(id="a" * 32, run="2" * 32)
WORKER: Final = Session(id="b" * 32, run="2" * 32)
START_NS: Final = 1_700_000_000 * 10**9
DEAD_PID: Final = 2**22 + 1
"""More than Linux gives."""


def ms(number: float) -> int:
    """Return milliseconds in ns."""
    return round(number * 10**6)


def key(number: int) -> KernelCacheKey:
    """Return the key with this number."""
    return KernelCacheKey(id=number, build_id=9)


def a_trip(
    session: Session,
    seq: int,
    kernel: str,
    at_ms: int,
    duration_ms: int | None,
    outcome: CompilationOutcome | None = None,
    *,
    parent: int | None = None,
    layer: str = "numba",
    key: KernelCacheKey | None = None,
    error_type: str | None = None,
    message: str | None = None,
    abandoned: Abandoned | None = None,
    attributes: Mapping[str, AttributeValue] | None = None,
) -> Trip:
    """Return a trip that starts so many milliseconds after START_NS."""
    pid = 100 if session != WORKER else DEAD_PID
    context: dict[str, AttributeValue] = {semconv.PROCESS_PID: pid, semconv.THREAD_ID: 1}
    if outcome is not None:
        context[semconv.DEVICE_LOADED] = True
    return Trip(
        session=session,
        seq=seq,
        parent_seq=parent,
        runtime="numba",
        layer=layer,
        kernel=kernel,
        started_ns=START_NS + ms(at_ms),
        duration_ns=None if duration_ms is None else ms(duration_ms),
        outcome=outcome,
        key=key,
        error_type=error_type,
        message=message,
        abandoned=abandoned,
        attributes={**context, **(attributes or {})},
    )


INTERNAL: Final = {semconv.INTERNAL: True}

BEFORE: Final = (
    a_trip(EARLIER, 0, "shop.stock", -9000, 900, COMPILED, key=key(5)),
    a_trip(EARLIER, 1, "shop.stock", -7000, 700, COMPILED, key=key(5)),
    a_trip(EARLIER, 2, "shop.quick", -6000, 50, COMPILED, key=key(7)),
    a_trip(EARLIER, 3, "shop.quick.inner", -5900, 40, COMPILED, key=key(8)),
)
"""An earlier run."""

ENDED: Final = (
    # Nested: 1 is in 0, 2 in 1 but of another layer, 3 in 2 and so nearest to 1 in its own layer.
    a_trip(WEB, 0, "shop.price", 0, 1000, COMPILED, key=key(1)),
    a_trip(WEB, 1, "shop.tax", 100, 300, COMPILED, parent=0, key=key(2)),
    a_trip(WEB, 2, "shop.round", 150, 100, COMPILED, parent=1, layer="numba.gufunc", key=key(3)),
    a_trip(WEB, 3, "shop.cents", 160, 50, COMPILED, parent=2, key=key(4)),
    a_trip(WEB, 4, "numba.np.arraymath.array_sum", 500, 100, COMPILED, parent=0, attributes=INTERNAL),
    a_trip(WEB, 5, "numba.np.arraymath.array_max", 700, 60, COMPILED, parent=0, attributes=INTERNAL),
    # Another thread, half in the time of 0: 700 ms to compile last time, 400 ms to load.
    a_trip(WEB, 6, "shop.stock", 800, 400, LOADED, key=key(5)),
    # Never seen to compile.
    a_trip(WEB, 7, "shop.strange", 2000, 100, LOADED, key=key(6)),
    # Longer to load than to compile, and what it holds is not counted again.
    a_trip(WEB, 8, "shop.quick", 3000, 80, LOADED, key=key(7)),
    a_trip(WEB, 9, "shop.quick.inner", 3010, 20, LOADED, parent=8, key=key(8)),
    a_trip(
        WEB,
        10,
        "shop.broken",
        4000,
        10,
        error_type="numba.core.errors.TypingError",
        message="numba.core.errors.TypingError at /srv/shop/pricing.py:41",
    ),
    a_trip(WEB, 11, "shop.cents", 4002, 5, parent=10, abandoned=Abandoned.NESTED),
    a_trip(WORKER, 0, "shop.price", 100, 50, REKEYED, key=key(1)),
)
"""The trips of the run that have ended, in two processes."""

UNFINISHED: Final = a_trip(WORKER, 1, "shop.slow", 200, None)

LATEST: Final = (*ENDED, UNFINISHED)
"""The run."""
