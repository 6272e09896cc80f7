"""A real program under `otel-kernel run`, which sends its trips and records them too."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cli.command import COMMAND

from otel_kernel.recording.reader import read_trips
from otel_kernel.records import Trip

PROGRAM = Path(__file__).parents[1] / "cli" / "programs" / "shop_kernels.py"

# The last two make `requests` overlook the certificate that an exporter was given.
_LEFT_OUT = ("OTEL_", "NUMBA_", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def run(
    folder: Path,
    otlp: str,
    *arguments: str | Path,
    program: Path = PROGRAM,
    level: str = "full",
    variables: Mapping[str, str] | None = None,
) -> list[Trip]:
    """Run a program of Numba, which stores in `folder`, and return the trips of that run."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_LEFT_OUT)}
    recording = folder / f"recording-{len(list(folder.glob('recording-*.db')))}.db"
    command: list[str | Path] = [
        *COMMAND,
        "run",
        "--recording",
        recording,
        "--level",
        level,
        "--otlp",
        otlp,
        "--",
    ]
    done = subprocess.run(
        [*command, COMMAND[0], program, *arguments],
        env={**kept, "NUMBA_CACHE_DIR": str(folder / "store"), **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return list(read_trips(recording))


def fields(trips: Iterable[Trip]) -> dict[tuple[str, int], dict[str, Any]]:
    """Return all fields of trips, each under what identifies it, but for the ids that only a span has."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for trip in trips:
        identity = (trip.session.id, trip.seq)
        assert identity not in found, f"{trip.kernel} is there twice"
        value: dict[str, Any] = json.loads(json.dumps(trip.to_json()))
        found[identity] = {key: item for key, item in value.items() if key not in ("trace_id", "span_id")}
    return found
