"""What tests need beside Python: without it they are skipped, and fail in CI."""

from __future__ import annotations

import os

import pytest


def need(reason: str | None) -> None:
    """Skip the test, or fail where everything is required, if something is missing for the reason given."""
    if reason is None:
        return
    if os.environ.get("OTEL_KERNEL_REQUIRE_ALL") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
