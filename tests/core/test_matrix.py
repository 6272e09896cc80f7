"""CI runs the oldest versions of what has changed."""

from __future__ import annotations

import pytest
from matrix import oldest_sessions

NUMBA = "matrix(numba-0.61.0-opentelemetry-1.35.0-wrapt-1)"
TRITON = "matrix(triton-3.4.0-opentelemetry-1.35.0-wrapt-1)"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (["docs/cli.md", "README.md"], []),
        (["instrumentors/triton/points.py"], [TRITON]),
        (["tests/numba/test_keys.py", "instrumentors/triton/fields.py"], [NUMBA, TRITON]),
        (["otel_kernel/trip.py"], [NUMBA]),
    ],
)
def test_the_oldest_of_what_has_changed_is_run(changed: list[str], expected: list[str]) -> None:
    assert expected == oldest_sessions(changed)
