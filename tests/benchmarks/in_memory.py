"""100,000 trips in memory: read from finished spans, held, and reported."""

from __future__ import annotations

import tempfile
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from telemetry import CollectingSink

from benchmarks.harness import Line, Rounds, processor_seconds, shown
from benchmarks.trips import in_batches, spans_of, trips, write_otlp
from otel_kernel.exporter import TripExporter
from otel_kernel.inputs import open_input
from otel_kernel.report.opening import opened
from otel_kernel.report.summary import summarize

_TRIPS = 100_000
_MEASURED = 10_000
"""Trips whose memory is counted, which is slow; it grows with their number."""
_BATCH = 512
_ROUNDS = 3


def _bytes_held(make: Callable[[], object]) -> int:
    tracemalloc.start()
    held = make()
    current, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del held
    return current


def _exported(spans: list[ReadableSpan]) -> CollectingSink:
    sink = CollectingSink()
    exporter = TripExporter(sink)
    for batch in in_batches(spans, _BATCH):
        exporter.export(batch)
    return sink


def _encoded(spans: list[ReadableSpan]) -> None:
    for batch in in_batches(spans, _BATCH):
        encode_spans(batch)


def _report(path: Path) -> None:
    def lost(problem: object) -> None:
        raise RuntimeError(problem)

    with opened(path, lost) as recording:
        summarize(recording.connection)


def _read(path: Path) -> None:
    deque(open_input(path), maxlen=0)


def _exporter_lines() -> Iterator[Line]:
    spans = spans_of(trips(_TRIPS))
    rounds = Rounds(
        {
            "trips": lambda: processor_seconds(lambda: _exported(spans)),
            "encoded": lambda: processor_seconds(lambda: _encoded(spans)),
        },
        _ROUNDS,
    )
    yield shown("100,000 spans to trips / to OTLP protobuf", rounds.ratios("trips", "encoded"))
    held = _bytes_held(lambda: _exported(spans[:_MEASURED])) / _bytes_held(lambda: spans_of(trips(_MEASURED)))
    yield shown("memory of 10,000 trips / of their spans", [held])


def lines() -> Iterator[Line]:
    """Measure the exporter beside the encoder that any OTLP exporter runs, and a report beside its reading."""
    yield from _exporter_lines()
    with tempfile.TemporaryDirectory() as folder:
        path = write_otlp(Path(folder) / "trips.jsonl", trips(_TRIPS), batch=_BATCH)
        rounds = Rounds(
            {
                "report": lambda: processor_seconds(lambda: _report(path)),
                "read": lambda: processor_seconds(lambda: _read(path)),
            },
            _ROUNDS,
        )
    yield shown("report over 100,000 trips of OTLP JSON / reading them", rounds.ratios("report", "read"))
