"""Instrumenting before, after and around the import of a runtime."""

from __future__ import annotations

from pathlib import Path

import pytest
from order_matrix import ORDERS, Order, Program, expected, observed

NOT_INSTRUMENTED = "Attempting to uninstrument while already uninstrumented"


def acme(path: Path) -> Program:
    return Program(
        module="acme",
        instrumentor="acme_instrumentor:AcmeInstrumentor",
        compile="module.Compiler().compile(f'k{number}')",
        path=[path],
    )


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_every_order_leaves_one_wrapper_or_none(acme_path: Path, order: Order) -> None:
    counts, errors = observed(acme(acme_path), order)

    assert expected(order) == counts
    assert [] == [line for line in errors.splitlines() if line != NOT_INSTRUMENTED]


def test_matrix_holds_every_order_of_one_import_two_on_and_one_off() -> None:
    four = [
        order for order in ORDERS if sorted(order) == ["import", "instrument", "instrument", "uninstrument"]
    ]

    assert 12 == len(four)


def test_expected_counts_follow_the_last_step() -> None:
    assert [None, 1, 0, 1] == expected(("instrument", "import", "uninstrument", "instrument"))
    assert [0, 1, 1] == expected(("import", "instrument", "instrument"))
