"""What all tests share: our own faults fail a test, and no test sees what another left in the process."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.building import BUILD_SECONDS, PACKAGES, binary, built, missing
from telemetry import CollectingSink, Telemetry

from otel_kernel import faults, imports, patching, phases, pipeline, session, states
from otel_kernel.options import VARIABLE_PREFIX

ACME = Path(__file__).parent / "core" / "runtime"


def pytest_configure(config: pytest.Config) -> None:
    # As `nohup` and the background of a shell leave them: programs that tests start would inherit that.
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line(
        "markers", "faults_logged: our own faults are logged, as for users, and do not raise"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the first tests that need a server wait until it is built."""
    users = [item for item in items if "servers" in getattr(item, "fixturenames", ())]
    if users and missing() is None and not all(binary(name).exists() for name in PACKAGES):
        for item in users:
            item.add_marker(pytest.mark.timeout(BUILD_SECONDS))


@pytest.fixture(scope="session")
def servers() -> None:
    """The Collector and Jaeger, built; `servers.collector` and `servers.jaeger` start them."""
    reason = missing()
    if reason is not None:
        if os.environ.get("OTEL_KERNEL_REQUIRE_ALL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    for name in PACKAGES:
        built(name)


@pytest.fixture(autouse=True)
def fresh_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test the state of a process that has just started."""
    for variable in list(os.environ):
        if variable.startswith(VARIABLE_PREFIX):
            monkeypatch.delenv(variable)
    monkeypatch.setattr(faults, "reraise", request.node.get_closest_marker("faults_logged") is None)
    monkeypatch.setattr(faults, "_seen", set[Any]())
    monkeypatch.setattr(phases, "_named", None)
    monkeypatch.setattr(pipeline, "_current", None)
    monkeypatch.setattr(session, "_seq", itertools.count())
    monkeypatch.setattr(states, "_at_work", list[Any]())
    monkeypatch.setattr(states, "_over", False)


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    """A pipeline that keeps everything in memory: spans, measurements and the trips of a sink."""
    kept = Telemetry(CollectingSink())
    pipeline.configure(tracer_provider=kept.tracer_provider, meter_provider=kept.meter_provider)
    pipeline.add_sink(kept.sink)
    yield kept
    kept.close()


@pytest.fixture
def acme_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path with acme 1.2, which is not imported; afterwards nothing of it is left."""
    path = tmp_path / "site"
    shutil.copytree(ACME, path, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = path / "acme_compiler-1.2.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: acme-compiler\nVersion: 1.2\n")
    monkeypatch.setattr(imports, "_waiting", dict[str, Any]())
    monkeypatch.setattr(imports, "_unannounced", set[str]())
    monkeypatch.setattr(patching, "_patches", dict[Any, Any]())
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "path", [str(path), *sys.path])
    yield path
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme"]:
        del sys.modules[name]


@pytest.fixture
def acme(acme_path: Path) -> Any:
    """The module `acme`, imported and not instrumented."""
    import importlib

    return importlib.import_module("acme")
