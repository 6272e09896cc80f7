"""The first code of ours in a process: waits for a runtime to be imported, then instruments it.

Everything heavier (wrapt, the OpenTelemetry API, the instrumentor) is imported at that moment. A process
that imports no runtime pays for this module alone.
"""

from __future__ import annotations

RUNTIMES = {
    "numba": "otel_kernel.instrumentors.numba:NumbaInstrumentor",
}
"""The module whose import wakes an instrumentor; the same entry points are in pyproject.toml."""
