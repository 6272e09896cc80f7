from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def quiet_limits() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] - pytest finds it
    """The SDK warns of every attribute that it drops or cuts, which these tests make it do a million times."""
    logger = logging.getLogger("opentelemetry.attributes")
    before = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(before)
