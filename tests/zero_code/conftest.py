from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from otlp.receiver import Protocol, Receiver

from zero_code.launching import acme_site


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
def acme_variables(tmp_path: Path) -> dict[str, str]:
    """The variables with which a program finds acme and the command its instrumentor."""
    return acme_site(tmp_path / "site")
