"""Prometheus and Alertmanager, where they can be had."""

from __future__ import annotations

import os

import pytest
from servers import debian


@pytest.fixture(autouse=True, scope="session")
def debian_packages() -> None:
    """Skip the tests where the packages cannot be had; CI fails instead."""
    reason = debian.missing()
    if reason and os.environ.get("OTEL_KERNEL_REQUIRE_ALL") != "1":
        pytest.skip(reason)
