"""The versions of torch in which every point is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from torch_programs import PROGRAMS, ROOT

OURS = ("opentelemetry-api", "opentelemetry-instrumentation", "packaging", "wrapt")


def check_points(python: Path) -> None:
    done = subprocess.run(
        [str(python), str(PROGRAMS / "points.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_point_is_there_in_the_installed_version() -> None:
    check_points(Path(sys.executable))


@pytest.mark.slow
@pytest.mark.timeout(900)  # gigabytes are downloaded where no cache has them
@pytest.mark.parametrize("torch", ["2.11.0", "2.13.0"])
def test_every_point_is_there_in(torch: str, tmp_path: Path) -> None:
    uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    assert uv is not None
    folder = tmp_path / "venv"
    python = folder / "bin" / "python"
    needed = [f"torch=={torch}", *(f"{name}=={version(name)}" for name in OURS)]
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    subprocess.run([uv, "pip", "install", "--quiet", "--python", str(python), *needed], check=True)
    try:
        check_points(python)
    finally:
        shutil.rmtree(folder)  # five gigabytes
