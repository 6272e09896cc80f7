"""Ids of spans and traces, made from what is replayed and from nothing else."""

from __future__ import annotations

from otel_kernel.records import digest128


def trace_id(session_id: str) -> int:
    """Return the trace of a session."""
    return digest128(f"trace {session_id}") or 1


def span_id(session_id: str, seq: int) -> int:
    """Return the span of a record."""
    return _span_id(f"span {session_id} {seq}")


def trial_span_id(session_id: str, seq: int, index: int) -> int:
    """Return the span of a trial of a tune."""
    return _span_id(f"trial {session_id} {seq} {index}")


def _span_id(text: str) -> int:
    return digest128(text) >> 64 or 1  # an id of zeros stands for none
