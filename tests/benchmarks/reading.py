"""Reading OTLP JSON lines, beside the parser alone."""

from __future__ import annotations

import json
import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from written_trips import write_otlp

from benchmarks.harness import Line, Rounds, at_most, processor_seconds
from benchmarks.trips import trips
from otel_kernel.inputs import open_input

_TRIPS = 4_000
_ROUNDS = 20


def _parse(path: Path) -> None:
    with path.open("rb") as lines:
        for line in lines:
            json.loads(line)


def _read(path: Path) -> None:
    deque(open_input(path), maxlen=0)


def _rounds(path: Path) -> Rounds:
    return Rounds(
        {
            "read": lambda: processor_seconds(lambda: _read(path)),
            "parse": lambda: processor_seconds(lambda: _parse(path)),
        },
        _ROUNDS,
    )


def lines() -> Iterator[Line]:
    """Measure for one span a line, and for as many as a batch of the SDK has."""
    for batch in (1, 512):
        with tempfile.TemporaryDirectory() as folder:
            rounds = _rounds(write_otlp(Path(folder) / "trips.jsonl", trips(_TRIPS), batch=batch))
        spans = "one span" if batch == 1 else f"{batch} spans"
        yield at_most(f"reading OTLP JSON, {spans} a line / json.loads", 2, rounds.ratios("read", "parse"))
