"""The examples, cold and warm, with otel-kernel booted as for users."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch_store
from torch_programs import ROOT

from otel_kernel.recording.reader import read_trips
from otel_kernel.records import Trip

pytestmark = pytest.mark.slow

GRAPHS = "torch.inductor.graph"


def run_example(name: str, folder: Path) -> list[Trip]:
    """Run an example and return its trips; a second run finds the store of the first."""
    store = folder / "store"
    if not store.exists():
        torch_store.copy_to(store)
    recording = folder / f"{len(list(folder.glob('*.db')))}.db"
    subprocess.run(
        [sys.executable, str(ROOT / "examples" / name)],
        env={
            **torch_store.environment(store),
            "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "otel_kernel" / "sitecustomize", ROOT))),
            "OTEL_KERNEL_BOOT": "1",
            "OTEL_KERNEL_RECORDING": str(recording),
        },
        cwd=folder,
        check=True,
        timeout=280,
    )
    return list(read_trips(recording))


def outcomes(trips: list[Trip], layer: str = GRAPHS) -> Counter[tuple[str, str]]:
    return Counter(
        (trip.kernel, trip.outcome.value if trip.outcome else trip.state)
        for trip in trips
        if trip.layer == layer
    )


def of(trip: Trip, name: str) -> Any:
    return trip.attributes.get(f"compute.kernel.{name}")


def test_training_compiles_both_graphs_once_and_then_loads_them(tmp_path: Path) -> None:
    cold, warm = (run_example("torch_training.py", tmp_path) for _ in range(2))

    names = ("__main__.Block.forward[forward]", "__main__.Block.forward[backward]")

    assert {(name, "compiled"): 1 for name in names} == outcomes(cold)
    assert {(name, "loaded"): 1 for name in names} == outcomes(warm)
    assert {"compiled"} == {end for _, end in outcomes(cold, "torch.inductor.cpp_kernel")}
    assert {"loaded"} == {end for _, end in outcomes(warm, "torch.inductor.cpp_kernel")}


def test_serving_compiles_nothing_once_it_serves(tmp_path: Path) -> None:
    trips = [trip for trip in run_example("torch_serving.py", tmp_path) if trip.layer == GRAPHS]

    first, second = trips

    assert ("0/0", "0/1") == (of(first, "compilation.id"), of(second, "compilation.id"))
    assert "expected 8, actual 16" in of(second, "compilation.reason")
    assert {None} == {of(trip, "phase") for trip in trips}
