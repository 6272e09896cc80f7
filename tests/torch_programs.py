"""Runs the programs of `tests/torch/programs`, and tells what they have reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch_store

from otel_kernel.records import Trip

ROOT = Path(__file__).parents[1]
PROGRAMS = Path(__file__).parent / "torch" / "programs"


@dataclass(frozen=True)
class Report:
    """What a program has reported, by its parts."""

    lines: list[dict[str, Any]]
    stderr: str

    def _of(self, kind: str, part: str | None) -> list[Any]:
        return [
            line["value"]
            for line in self.lines
            if line["kind"] == kind and (part is None or line["part"] == part)
        ]

    def trips(self, part: str | None = None) -> list[Trip]:
        """Return the trips of a part, or all, in the order of their starts."""
        return sorted((Trip.from_json(trip) for trip in self._of("trip", part)), key=lambda trip: trip.seq)

    def spans(self, part: str | None = None, name: str = "") -> list[dict[str, Any]]:
        """Return the spans of a part, or all, whose names start with `name`, the first to end first."""
        return [span for span in self._of("span", part) if span["name"].startswith(name)]

    def graphs(self, part: str) -> list[Trip]:
        """Return the trips of graphs in a part."""
        return [trip for trip in self.trips(part) if trip.layer == "torch.inductor.graph"]

    def kernels(self, part: str) -> list[Trip]:
        """Return the trips of C++ kernels in a part."""
        return [trip for trip in self.trips(part) if trip.layer == "torch.inductor.cpp_kernel"]

    def value(self, name: str) -> Any:
        """Return a reported value."""
        (found,) = [value[name] for value in self._of("value", None) if name in value]
        return found


Run = Callable[..., Report]


def run_program(folder: Path, name: str, *arguments: str, **variables: str) -> Report:
    """Run a file of `programs/` with the store in `folder`, which is made if it is not there."""
    store = folder / "store"
    if not store.exists():
        torch_store.copy_to(store)
    report = folder / f"report-{len(list(folder.glob('report-*')))}.jsonl"
    report.touch()
    environment = {
        **torch_store.environment(store),
        "PYTHONPATH": os.pathsep.join(map(str, (PROGRAMS, ROOT, ROOT / "tests"))),
        "REPORT": str(report),
        **variables,
    }
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / name), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert done.returncode == 0, textwrap.indent(done.stdout + done.stderr[-4000:], "  ")
    return Report([json.loads(line) for line in report.read_text().splitlines()], done.stderr)
