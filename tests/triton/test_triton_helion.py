"""Helion generates kernels of Triton, which come the way of all others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

# Helion reads the source of its kernels, so the program is a file.
PROGRAM = """
import json
import triton_device
from telemetry import CollectingSink
from otel_kernel import pipeline
from otel_kernel.instrumentors.triton import TritonInstrumentor

TritonInstrumentor().instrument()
sink = CollectingSink()
pipeline.add_sink(sink)

import torch
import helion
import helion.language as hl

@helion.kernel(config=helion.Config(block_sizes=[64]), static_shapes=True)
def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(out.size()):
        out[tile] = x[tile] + y[tile]
    return out

for _ in range(2):
    add(torch.ones(128), torch.ones(128))
print(json.dumps([trip.to_json() for trip in sink.trips]))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("helion") is None or find_spec("torch") is None, reason="Helion and PyTorch are not installed"
)
def test_helion_rides_along(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    outcomes: list[tuple[str, str, bool]] = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "program.py"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(
                    (str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", ""))
                ),
                "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        (trip,) = json.loads(done.stdout.splitlines()[-1])
        outcomes.append((trip["kernel"], trip["outcome"], trip["attributes"]["compute.kernel.device_loaded"]))
        # Helion chooses the store at its first compile.
        assert trip["attributes"]["compute.kernel.store.location"].startswith(str(tmp_path / "inductor"))

    assert [("_helion_add", "compiled", True), ("_helion_add", "loaded", True)] == outcomes
