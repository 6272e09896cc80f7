"""The wheel, built once for all tests here, from the tree and through the source distribution."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _uv(*arguments: str | Path) -> None:
    beside_us = Path(sys.executable).with_name("uv")
    uv = str(beside_us) if beside_us.exists() else shutil.which("uv")

    assert uv, "these tests build and install with uv: pip install uv"
    result = subprocess.run([uv, *arguments], capture_output=True, text=True, check=False)
    assert 0 == result.returncode, result.stderr


def _built(*arguments: str, out: Path) -> Path:
    _uv("build", *arguments, "--out-dir", out, ROOT)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the tree."""
    return _built("--wheel", out=tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def wheel_of_sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the source distribution of the tree."""
    return _built(out=tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh virtual environment with the wheel and Numba, in the versions we use."""
    folder = tmp_path_factory.mktemp("installed")
    constraints = folder / "constraints.txt"
    constraints.write_text(
        "".join(f"{each.name}=={each.version}\n" for each in distributions() if each.name != "otel-kernel")
    )
    _uv("venv", "--python", sys.executable, folder / "venv")
    python = folder / "venv" / "bin" / "python"
    _uv(
        "pip",
        "install",
        "--python",
        python,
        "--constraint",
        constraints,
        f"otel-kernel[numba] @ {wheel.as_uri()}",
    )
    return python.parent
