"""Runs every case for every runtime that can be imported here."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from conformance import support
from conformance.adapter import Adapter
from conformance.report import Case, Report

HERE = Path(__file__).parent
ADAPTERS: list[Adapter] = [
    importlib.import_module(f"conformance.adapters.{path.stem}").ADAPTER
    for path in sorted((HERE / "adapters").glob("[!_]*.py"))
]
SUPPORT = support.read()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "adapter" in metafunc.fixturenames:
        case = support.case_name(metafunc.function.__name__)
        adapters = [adapter for adapter in ADAPTERS if SUPPORT.is_run(adapter.label, case)]
        metafunc.parametrize("adapter", adapters, ids=[adapter.label for adapter in adapters])


@pytest.fixture
def case(
    adapter: Adapter,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    compiled_and_loaded: Callable[[Adapter], tuple[Report, Report]],
) -> Case:
    name = support.case_name(request.function.__name__)
    spec = find_spec(adapter.module)
    if spec is None or spec.origin is None:  # a folder of tests of that name is no runtime
        if os.environ.get("OTEL_KERNEL_REQUIRE_ALL") == "1":
            pytest.fail(f"{adapter.module} is required here and cannot be imported")
        pytest.skip(f"{adapter.module} is not installed")
    reason = SUPPORT.reason(adapter.label, name)
    if reason is not None:
        pytest.skip(f"{adapter.label}: {reason}")
    return Case(adapter, tmp_path, lambda: compiled_and_loaded(adapter))


@pytest.fixture(scope="session")
def compiled_and_loaded(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[Adapter], tuple[Report, Report]]:
    """Return what runs `trips:main` cold and warm, once for a runtime."""
    done: dict[str, tuple[Report, Report]] = {}

    def runs(adapter: Adapter) -> tuple[Report, Report]:
        if adapter.label not in done:
            case = Case(adapter, tmp_path_factory.mktemp(adapter.label), lambda: runs(adapter))
            done[adapter.label] = case.run("trips:main"), case.run("trips:main")
        return done[adapter.label]

    return runs
