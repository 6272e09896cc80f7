"""JAX's own events about tracing and lowering, which come before a trip.

Every listener runs on the thread that compiles. This module imports JAX only once it listens.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Any

import otel_kernel
from otel_kernel import faults

_TRACED = "/jax/core/compile/jaxpr_trace_duration"
_LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"


class _Recent(threading.local):
    """What happened last on this thread and is not yet part of a trip."""

    trace: tuple[str, int] | None = None
    stages: dict[str, int] | None = None


_recent = _Recent()
_frames_excluded = False


def _on_time_span(event: str, start: float, end: float, **metadata: Any) -> None:
    """Take note of a time span; JAX gives wall clock seconds."""
    duration = int((end - start) * 1e9)
    if event == _TRACED:
        name = metadata.get("fun_name")
        # Functions inside the traced one have events too; theirs end before. Without a name, which the
        # first versions do not give, nobody could tell whose time it is.
        _recent.trace = (name, duration) if isinstance(name, str) else None
    elif event == _LOWERED and _recent.stages is not None:
        _recent.stages["lower"] = duration
        _recent.stages = None


_listener = faults.guarded("the listener to JAX's events", _on_time_span)


def listen() -> None:
    """Listen to JAX's events, and keep our frames out of what JAX shows to users."""
    import jax.monitoring

    jax.monitoring.register_event_time_span_listener(_listener)
    _exclude_our_frames()


def stop_listening() -> None:
    """Undo `listen`, if JAX was there to be listened to."""
    import sys

    monitoring: Any = sys.modules.get("jax._src.monitoring")
    if monitoring is None:
        return
    unregister = getattr(monitoring, "unregister_event_time_span_listener", None) or getattr(
        monitoring, "_unregister_event_time_span_listener_by_callback", None
    )
    if unregister is not None:
        # Somebody may have cleared all listeners; JAX asserts that it knows this one.
        with contextlib.suppress(AssertionError, ValueError):
            unregister(_listener)


def take_trace(function: str) -> int | None:
    """Return how long the last trace on this thread took, once, if it was of `function`."""
    trace, _recent.trace = _recent.trace, None
    return trace[1] if trace is not None and trace[0] == function else None


def expect_lowering(stages: dict[str, int]) -> None:
    """Let the next event about lowering on this thread go into `stages`."""
    _recent.stages = stages


def _exclude_our_frames() -> None:
    """Make our frames JAX's own: not shown in its tracebacks, nor taken for the place of an operation.

    JAX has no way back, and needs none: there is nobody else's code in our folder.
    """
    global _frames_excluded
    if _frames_excluded:
        return
    from jax._src import source_info_util, traceback_util

    folder = str(Path(otel_kernel.__file__).parent) + os.sep
    source_info_util.register_exclusion(folder)
    traceback_util.register_exclusion(folder)
    _frames_excluded = True
