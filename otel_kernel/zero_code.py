"""What `opentelemetry-instrument` calls before it loads any instrumentor."""

from __future__ import annotations

import os

from otel_kernel.boot import RUNTIMES

DISABLED_VARIABLE = "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"


def instrument() -> None:
    """Instrument all runtimes that are not disabled.

    Ahead of the loader, which stops at the first instrumentor that raises: those of others may. When the
    loader comes to ours, they are at work, and its call changes nothing.
    """
    from importlib.metadata import entry_points

    from otel_kernel import faults

    disabled = {name.strip() for name in os.environ.get(DISABLED_VARIABLE, "").split(",")}
    targets = set(RUNTIMES.values())
    for entry_point in entry_points(group="opentelemetry_instrumentor"):
        if entry_point.value not in targets or disabled & {entry_point.name, "*"}:
            continue
        try:
            entry_point.load()().instrument()
        except Exception:
            faults.caught(f"instrumenting by {entry_point.name}")
