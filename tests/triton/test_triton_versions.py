"""Versions of Triton that are refused, and those that lack a point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from triton_device import TELLS_OF_LAUNCHES

ROOT = Path(__file__).parents[2]

PROGRAM = """
import triton
from otel_kernel.instrumentors.triton import TritonInstrumentor

before = dict(vars(triton))
TritonInstrumentor().instrument()
assert before == dict(vars(triton))
print(TritonInstrumentor().state_of_points())
"""


def run_with(folder: Path) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT), os.environ.get("PYTHONPATH", ""))),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


def make_triton(folder: Path, version: str, distribution: str | None) -> None:
    (folder / "triton").mkdir()
    (folder / "triton" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    if distribution is not None:
        metadata = folder / f"{distribution}-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")


def test_an_older_version_is_refused_with_one_line(tmp_path: Path) -> None:
    make_triton(tmp_path, "3.3.1", "triton")
    stdout, stderr = run_with(tmp_path)

    assert "{'refused': 1}\n" == stdout
    assert (
        "triton 3.3.1 is not instrumented: version 3.3.1 is not among the supported triton<4,>=3.4\n"
        == stderr
    )


def test_a_version_that_looks_otherwise_is_refused_with_one_line(tmp_path: Path) -> None:
    make_triton(tmp_path, "3.99.0", "triton")
    stdout, stderr = run_with(tmp_path)

    assert "{'refused': 1}\n" == stdout
    assert 1 == len(stderr.splitlines())
    assert stderr.startswith("triton 3.99.0 is not instrumented: ")


@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
def test_the_points_that_a_version_has(triton_telemetry: object) -> None:
    from otel_kernel.instrumentors.triton import TritonInstrumentor

    state = TritonInstrumentor().state_of_points()
    missing = {str(point).rpartition(".")[2] for point in TritonInstrumentor()._missing}  # pyright: ignore[reportPrivateUsage] - by name

    assert (set() if TELLS_OF_LAUNCHES else {"_do_compile", "get_cache_key", "submit"}) == missing
    assert len(missing) == state["missing"]
    assert state["patched"] >= 7
