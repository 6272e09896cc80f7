"""Prometheus and Alertmanager, where they can be had."""

from __future__ import annotations

import pytest
from servers import debian
from servers.needing import need


@pytest.fixture(autouse=True, scope="session")
def debian_packages() -> None:
    """Skip the tests where the packages cannot be had; CI fails instead."""
    need(debian.missing())
