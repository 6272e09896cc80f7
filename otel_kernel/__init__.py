"""OpenTelemetry instrumentation for kernel compilation.

Importing this package imports nothing else: it is imported at the start of every Python process that
`otel-kernel run` starts.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` alone would cost a process more than all the rest of our start

if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "instrument", "phase", "uninstrument"]


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
