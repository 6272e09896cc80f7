"""Numba instrumented in this process, with everything that it tells kept in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance.report import Report
from numba_programs import Programs
from telemetry import Telemetry

from otel_kernel.instrumentors.numba import NumbaInstrumentor


@pytest.fixture
def told(telemetry: Telemetry) -> Iterator[Telemetry]:
    """What instrumented Numba tells; reading `Telemetry.trips` and `spans` is all a test needs."""
    instrumentor = NumbaInstrumentor()
    instrumentor.instrument()
    yield telemetry
    instrumentor.uninstrument()


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Report]:
    """The program `stored`, run cold and then warm."""
    programs = Programs(tmp_path_factory.mktemp("stored"))
    programs.copy("stored")
    return programs.run("stored"), programs.run("stored")
