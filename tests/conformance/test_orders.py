"""Every order in which a program can import the runtime and instrument it."""

from __future__ import annotations

import pytest
from order_matrix import ORDERS, Order, Program, expected, observed

from conformance.adapter import Adapter
from conformance.report import Case

NOT_INSTRUMENTED = "Attempting to uninstrument while already uninstrumented"
"""What OpenTelemetry's own base class says, and rightly."""


def is_ours(line: str) -> bool:
    """Whether a line on the standard error is of ours and not of the runtime."""
    return "otel-kernel" in line or "instrument" in line


@pytest.mark.parametrize("order", ORDERS, ids=", ".join)
def test_every_order_of_import_and_instrument(case: Case, adapter: Adapter, order: Order) -> None:
    program = Program(
        module=adapter.module,
        instrumentor=adapter.instrumentor,
        compile="import kernels; kernels.another(number)",
        path=[case.folder],
        variables=adapter.variables(case.store),
    )

    counts, complaints = observed(program, order)

    assert expected(order) == counts
    assert [] == [line for line in complaints.splitlines() if is_ours(line) and line != NOT_INSTRUMENTED]
