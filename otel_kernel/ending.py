"""What the core makes of what readers have set on a trip, and the typed trip that sinks are handed."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

from otel_kernel import phases, semconv, session
from otel_kernel.records import (
    AttributeValue,
    TextDigest,
    Trip,
    TruncatedText,
    check_parts,
    digest128,
    hex128,
)

if TYPE_CHECKING:
    from otel_kernel.trip import OpenTrip

COMPONENT_LIMIT = 128
"""Characters up to which a key component travels as it is; a longer one travels as a digest."""


def locate(trip: OpenTrip) -> None:
    """Add where and when this runs; a trip that is held may be finished on another thread."""
    attributes = trip.attributes
    attributes[semconv.PROCESS_PID] = session.pid()
    attributes[semconv.THREAD_ID] = threading.get_native_id()
    phase = phases.current(trip.pipeline.options.serving_after)
    if phase is not None:
        attributes[semconv.PHASE] = phase
    rank = session.rank()
    if rank is not None:
        attributes[semconv.RANK] = rank[0]
        if rank[1] is not None:
            attributes[semconv.WORLD_SIZE] = rank[1]


def complete(trip: OpenTrip) -> None:
    """Check what the readers have set, and add what follows from it.

    Raises:
        ValueError: a field is not what it must be.
    """
    check_parts("Trip", trip.outcome, trip.key, trip.ir, trip.source, (TruncatedText, TextDigest))
    attributes = trip.attributes
    if trip.outcome is not None:
        attributes.setdefault(semconv.OUTCOME_FROM, "runtime")
        attributes.setdefault(semconv.DEVICE_LOADED, False)
    if trip.code_digest is not None:
        specialization = attributes.get(semconv.SPECIALIZATION, "")
        target = attributes.get(semconv.TARGET, "")
        text = "\0".join((trip.kernel, trip.code_digest, str(specialization), str(target)))
        attributes[semconv.IDENTITY] = hex128(digest128(text))
    if trip.components:
        _fold_components(trip.components, attributes)
    if trip.stages:
        _fold_stages(trip.stages, attributes)


def _fold_components(components: dict[str, str], attributes: dict[str, AttributeValue]) -> None:
    shown = [
        (name, value if len(value) <= COMPONENT_LIMIT else f"blake2b:{hex128(digest128(value))}")
        for name, value in components.items()
    ]
    for name, value in shown[: semconv.MAX_FAMILY]:
        attributes[semconv.KEY_COMPONENT + name] = value
    if len(shown) > semconv.MAX_FAMILY:
        attributes[semconv.KEY_COMPONENT_OTHER] = json.dumps(dict(shown[semconv.MAX_FAMILY :]))


def _fold_stages(stages: dict[str, int], attributes: dict[str, AttributeValue]) -> None:
    longest = sorted(stages.items(), key=lambda stage: stage[1], reverse=True)
    for name, duration in longest[: semconv.MAX_FAMILY]:
        attributes[semconv.STAGE + name] = duration
    if len(longest) > semconv.MAX_FAMILY:
        attributes[semconv.STAGE_OTHER] = sum(duration for _, duration in longest[semconv.MAX_FAMILY :])


def typed(trip: OpenTrip, duration_ns: int | None) -> Trip:
    """Return the trip as it is now, checked.

    Args:
        trip: the trip in flight.
        duration_ns: how long it took in ns; None while it runs.

    Raises:
        ValueError: a reader has set a field to what it cannot be.
    """
    return Trip(
        session=trip.session,
        seq=trip.seq,
        parent_seq=trip.parent_seq,
        runtime=trip.runtime,
        layer=trip.layer,
        kernel=trip.kernel,
        started_ns=trip.started_ns,
        duration_ns=duration_ns,
        outcome=trip.outcome,
        key=trip.key,
        ir=trip.ir,
        source=trip.source,
        abandoned=trip.abandoned,
        error_type=trip.error_type,
        message=trip.message,
        trace_id=trip.trace_id,
        span_id=trip.span_id,
        attributes=trip.attributes,
    )
