"""Numba instrumented in this process, with everything that it tells kept in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from telemetry import Telemetry

from otel_kernel.instrumentors.numba import NumbaInstrumentor


@pytest.fixture
def told(telemetry: Telemetry) -> Iterator[Telemetry]:
    """What instrumented Numba tells; reading `Telemetry.trips` and `spans` is all a test needs."""
    instrumentor = NumbaInstrumentor()
    instrumentor.instrument()
    yield telemetry
    instrumentor.uninstrument()
