"""What the tests of the core share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from acme_instrumentor import instrumentor
from opentelemetry import trace
from telemetry import Telemetry

from otel_kernel import spans, trip


@pytest.fixture
def compiler(acme: Any, telemetry: Telemetry) -> Any:
    """A compiler of acme, instrumented, whose trips are in `telemetry`."""
    assert telemetry is not None
    instrumentor().instrument()
    return acme.Compiler()


@pytest.fixture
def nothing_left_behind() -> Iterator[None]:
    """Whatever the test does, none of its trips and spans stays current or in flight."""
    yield

    assert trip.current() is None
    assert trace.get_current_span() is trace.INVALID_SPAN
    assert spans.oldest_active() == 0
