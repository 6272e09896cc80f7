"""OpenTelemetry instrumentation for kernel compilation.

Importing this package imports nothing else: it is imported at the start of every Python process that
`otel-kernel run` starts.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` alone would cost a process more than all the rest of our start

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "incoming_context", "instrument", "outgoing_context", "phase", "uninstrument"]


def instrument(**options: Any) -> None:
    """Instrument every supported runtime, now if it is imported and else when it is. Never raises.

    Args:
        **options: `tracer_provider`, `meter_provider`, `logger_provider`, and the fields of
            `otel_kernel.options.Options`.
    """
    try:
        from otel_kernel.instrumentor import all_instrumentors
    except ImportError as error:
        from otel_kernel import faults

        faults.logger.error("nothing is instrumented: %s", error)
        return
    for instrumentor in all_instrumentors():
        instrumentor.instrument(**options)


def uninstrument() -> None:
    """Restore every runtime that was instrumented."""
    if "otel_kernel.instrumentor" not in sys.modules:
        return  # nothing was
    from otel_kernel.instrumentor import all_instrumentors

    for instrumentor in all_instrumentors():
        if instrumentor.is_instrumented_by_opentelemetry:
            instrumentor.uninstrument()


def phase(name: str) -> None:
    """Name the phase that the program is in from here on, such as `serving`."""
    from otel_kernel import phases

    phases.enter(name)


def outgoing_context() -> dict[str, str]:
    """Return the current trace context, to go along in a message to another process."""
    from otel_kernel import propagation

    return propagation.outgoing()


def incoming_context(carrier: Mapping[str, str] | None) -> AbstractContextManager[None]:
    """Return a context manager: what compiles inside belongs to the trace that the message came from.

    Args:
        carrier: what `outgoing_context` returned in the other process; nothing changes with None.
    """
    from otel_kernel import propagation

    return propagation.incoming(carrier)
