"""A program that traces its own SQLite does not find our writes among its spans."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from example_trips import a_record, an_unfinished_trip
from opentelemetry.instrumentation.sqlite3 import SQLite3Instrumentor
from telemetry import Telemetry

from otel_kernel.recording.reader import read_trips
from otel_kernel.recording.writer import RecordingSink


def test_writing_a_trip_makes_no_span_of_an_instrumented_sqlite(telemetry: Telemetry, tmp_path: Path) -> None:
    theirs = SQLite3Instrumentor()
    theirs.instrument(tracer_provider=telemetry.tracer_provider)
    try:
        sink = RecordingSink(tmp_path / "recording.db")
        sink.started(an_unfinished_trip())
        sink.finished(a_record())
        sink.close()

        assert [] == telemetry.spans

        sqlite3.connect(tmp_path / "theirs.db").cursor().execute("SELECT 1")

        assert 1 == len(telemetry.spans), "theirs is at work"
    finally:
        theirs.uninstrument()

    assert [a_record()] == list(read_trips(tmp_path / "recording.db"))
