"""The oldest supported wrapt does what the newest does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
OLDEST = "1.16.0"
SUITES = ("contexts", "faults", "imports", "instrumentor", "orders", "patching", "shapes", "trip")
SAME = ("opentelemetry-distro", "opentelemetry-sdk", "packaging", "pytest", "pytest-timeout")
"""Installed beside wrapt, in the versions of this process."""


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the oldest supported wrapt."""
    uv = shutil.which(
        "uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    )
    if uv is None:
        if os.environ.get("OTEL_KERNEL_REQUIRE_ALL") == "1":
            pytest.fail("uv is required here and is not installed")
        pytest.skip("uv is not installed")
    venv = tmp_path_factory.mktemp("wrapt") / "venv"
    python = venv / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(venv)], check=True)
    requirements = [f"wrapt=={OLDEST}", *(f"{name}=={version(name)}" for name in SAME)]
    subprocess.run([uv, "pip", "install", "--quiet", "--python", str(python), *requirements], check=True)
    told = subprocess.run(
        [str(python), "-c", "import wrapt; print(wrapt.__version__)"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )

    assert told.stdout.strip() == OLDEST

    return python


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_core_works_with_the_oldest_wrapt(oldest: Path, suite: str) -> None:
    done = subprocess.run(
        [str(oldest), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/core/test_{suite}.py"],
        cwd=TESTS.parent,
        env={name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PYTEST_"))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
