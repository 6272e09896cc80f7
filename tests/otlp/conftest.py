from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from acme_instrumentor import compile_point, find_point, instrumentor

from otel_kernel.instrumentor import KernelInstrumentor
from otlp.readers import read_all
from otlp.receiver import Protocol, Receiver


@pytest.fixture(params=["grpc", "http/protobuf"])
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """Each of the two ways to send OTLP."""
    chosen: Protocol = request.param
    return chosen


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An OTLP endpoint."""
    with Receiver() as started:
        yield started


@pytest.fixture
def acme_instrumentor(acme: Any) -> Iterator[KernelInstrumentor]:
    """An instrumentor of acme that reads all that a reader can, not yet at work."""
    assert acme
    made = instrumentor(compile_point(read_all), find_point())
    yield made
    if made.is_instrumented_by_opentelemetry:
        made.uninstrument()
