"""What the processes of a case have reported, and how a test starts them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from conformance.adapter import Adapter
from otel_kernel.records import Trip

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent


@dataclass(frozen=True)
class Line:
    """One thing that one process reported."""

    kind: str
    pid: int
    value: Any


@dataclass(frozen=True)
class Report:
    """Everything that the processes of one script reported, in order."""

    lines: tuple[Line, ...]
    stdout: str
    stderr: str
    returncode: int
    text: str = field(repr=False)
    """The report as it was written."""

    def of(self, kind: str) -> list[Any]:
        """Return the values of the lines of one kind."""
        return [line.value for line in self.lines if line.kind == kind]

    def of_layer(self, layer: str | None) -> Report:
        """Return the same without trips, and spans of trips, of other layers."""
        kept = tuple(line for line in self.lines if layer is None or _layer_of(line) in (layer, None))
        return replace(self, lines=kept)

    @cached_property
    def trips(self) -> list[Trip]:
        """The finished trips that a sink was given."""
        return [Trip.from_json(value) for value in self.of("trip")]

    @cached_property
    def spans(self) -> list[dict[str, Any]]:
        """The spans of ours that ended."""
        return [span for span in self.of("span") if span["scope"].startswith("otel_kernel.")]

    @cached_property
    def trip_spans(self) -> list[dict[str, Any]]:
        """Those spans that stand for trips, and not for what is around them."""
        return [span for span in self.spans if span["attributes"]["compute.kernel.role"] == "trip"]

    @cached_property
    def values(self) -> dict[str, Any]:
        """The named values."""
        return {name: value for values in self.of("value") for name, value in values.items()}

    @cached_property
    def logs(self) -> list[str]:
        """The lines that our logger said."""
        return [line["message"] for line in self.of("log") if line["logger"].startswith("otel_kernel")]

    def trips_of(self, kernel: str) -> list[Trip]:
        """Return the finished trips of a kernel."""
        return [trip for trip in self.trips if trip.kernel == kernel]

    def span_of(self, trip: Trip) -> dict[str, Any]:
        """Return the span of a trip."""
        (found,) = [span for span in self.spans if span["span_id"] == trip.span_id]
        return found


def _layer_of(line: Line) -> str | None:
    if line.kind in ("trip", "started", "exported"):
        return str(line.value["layer"])
    if line.kind == "span" and line.value["attributes"].get("compute.kernel.role") == "trip":
        return str(line.value["attributes"]["compute.kernel.layer"])
    return None


class Case:
    """A fresh folder with the kernels of one runtime and an empty store."""

    def __init__(self, adapter: Adapter, folder: Path, shared: Callable[[], tuple[Report, Report]]) -> None:
        self._shared = shared
        self.adapter = adapter
        self.folder = folder
        self.store = folder / "store"
        shutil.copy(TESTS / "conformance" / "kernels" / f"{adapter.label}.py", folder / "kernels.py")

    @property
    def compiled_and_loaded(self) -> tuple[Report, Report]:
        """Two runs of `trips:main`, cold and warm, in a folder of their own; the same for all cases."""
        return self._shared()

    def reset(self) -> None:
        """Empty the store."""
        shutil.rmtree(self.store, ignore_errors=True)

    def run(self, script: str, *, faults: bool = False, variables: dict[str, str] | None = None) -> Report:
        """Run a script in a process of its own, which must end well.

        Args:
            script: `module:function` under `scripts/`, with what else the function reads from the command line.
            faults: whether faults of ours are only logged, as for users, and not raised.
            variables: of the environment, beside those that the adapter asks for.
        """
        report = run_python(
            ("-m", "conformance.harness", *f"conformance.scripts.{script}".split()),
            self.folder,
            {
                **self.adapter.variables(self.store),
                "CONFORMANCE_ADAPTER": self.adapter.label,
                "CONFORMANCE_STORE": str(self.store),
                "CONFORMANCE_FAULTS": "logged" if faults else "raised",
                **(variables or {}),
            },
        )
        return report.of_layer(self.adapter.layer)


def run_python(arguments: Sequence[str], folder: Path, variables: Mapping[str, str]) -> Report:
    """Run Python in a folder that it can import from, with the suite at hand; it must end well.

    Args:
        arguments: of the interpreter.
        folder: where it runs.
        variables: of the environment, beside those of this process.
    """
    file, name = tempfile.mkstemp(".jsonl", "report-", folder)
    os.close(file)
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={
            **{name: text for name, text in os.environ.items() if not name.startswith(("OTEL_", "PYTEST_"))},
            "PYTHONPATH": os.pathsep.join(map(str, (folder, TESTS, ROOT, *_path_of_ours()))),
            "CONFORMANCE_REPORT": name,
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, textwrap.indent(done.stderr[-4000:], "  ")
    text = Path(name).read_text()
    lines = tuple(Line(**json.loads(line)) for line in text.splitlines())
    return Report(lines, done.stdout, done.stderr, done.returncode, text)


def _path_of_ours() -> list[str]:
    """Return the path that this process was given, where packages may lie that are not installed."""
    return list(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
