"""The versions of OpenTelemetry that otel-kernel works with, and what it says of one that is too old."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from run.launching import environment

from otel_kernel.instrumentor import OLDEST
from zero_code.launching import TESTS, distribution

ROOT = TESTS.parent
CONSTRAINTS = TESTS / "constraints"
TOO_OLD = (
    "opentelemetry-instrumentation 0.48b0 is too old for otel-kernel; "
    f'pip install "opentelemetry-instrumentation>={OLDEST}"'
)
SUBSET = (
    "tests/zero_code/test_command.py",
    "tests/core/test_gauges.py",
    "tests/core/test_start_events.py",
    "tests/otlp/test_spans.py",
)


def uv(*arguments: str | Path) -> None:
    beside_us = Path(sys.executable).with_name("uv")
    found = str(beside_us) if beside_us.exists() else shutil.which("uv")

    assert found, "these tests install with uv: pip install uv"
    done = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr


def installed(folder: Path, *arguments: str | Path) -> Path:
    """Install packages in a new virtual environment, and return its interpreter."""
    uv("venv", "--python", sys.executable, folder)
    python = folder / "bin" / "python"
    uv("pip", "install", "--python", python, *arguments)
    return python


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", ["1.35.0", "1.45.2"])
def test_otel_kernel_works_with_a_set_of_versions(version: str, tmp_path: Path) -> None:
    constraints = CONSTRAINTS / f"otel-{version}.txt"
    named = re.findall(r"^(opentelemetry-(?:configuration|distro))==", constraints.read_text(), re.MULTILINE)
    tools = ("hypothesis", "jsonschema", "pytest", "pytest-timeout", "pyyaml")
    python = installed(
        tmp_path / "venv", "--constraint", constraints, "--editable", f"{ROOT}[numba,otlp]", *named, *tools
    )
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SUBSET],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == done.returncode, done.stdout


@pytest.mark.slow
def test_a_set_that_an_unpinned_install_resolves_to_is_one_line(tmp_path: Path) -> None:
    python = installed(
        tmp_path / "venv", "opentelemetry-sdk", "opentelemetry-instrumentation==0.48b0", "packaging"
    )
    said = instrumenting(python, PYTHONPATH=str(ROOT))

    assert [f"nothing is instrumented: {TOO_OLD}"] == said


def instrumenting(python: str | Path, *, before: str = "", **changes: str) -> list[str]:
    """Return what a program says when it instruments everything, and that it goes on."""
    done = subprocess.run(
        [
            python,
            "-c",
            f"{before}\nimport otel_kernel; otel_kernel.instrument(); otel_kernel.uninstrument(); print(7)",
        ],
        env=environment(changes),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "7\n") == (done.returncode, done.stdout)
    return done.stderr.splitlines()


@pytest.fixture
def old(tmp_path: Path) -> str:
    """A path on which the installed version is an old one."""
    distribution(tmp_path, "opentelemetry-instrumentation", "0.48b0")
    return f"{tmp_path}:{ROOT}"


def test_a_version_that_is_too_old_is_one_line_for_all_runtimes(old: str) -> None:
    assert [TOO_OLD] == instrumenting(sys.executable, PYTHONPATH=old)


def test_a_version_that_cannot_be_imported_is_one_line(old: str) -> None:
    # As without pkg_resources, which the old one needs and a new setuptools has no more.
    before = "import sys; sys.modules['opentelemetry.instrumentation.dependencies'] = None"

    assert [f"nothing is instrumented: {TOO_OLD}"] == instrumenting(
        sys.executable, before=before, PYTHONPATH=old
    )


def test_what_boots_a_runtime_says_it_once(old: str) -> None:
    before = "import sys; sys.modules['opentelemetry.instrumentation.dependencies'] = None"
    code = f"{before}; from otel_kernel import boot; boot.start(); import numba; print(7)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment({"PYTHONPATH": old, "OTEL_KERNEL_BOOT": "1"}),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "7\n") == (done.returncode, done.stdout)
    assert [f"numba is not instrumented: {TOO_OLD}"] == done.stderr.splitlines()


def test_the_oldest_version_is_the_one_that_the_project_names() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    constraints = (CONSTRAINTS / "otel-1.35.0.txt").read_text()

    assert f'"opentelemetry-instrumentation>={OLDEST},<1"' in project
    assert f"opentelemetry-instrumentation=={OLDEST}" in constraints.splitlines()
    for name in ("opentelemetry-api", "opentelemetry-sdk", "opentelemetry-exporter-otlp"):
        assert f'"{name}>=1.35,<2"' in project
        assert f"{name}==1.35.0" in constraints.splitlines()
    assert '"wrapt>=1.16,<3"' in project
    assert "wrapt==1.16.0" in constraints.splitlines()
