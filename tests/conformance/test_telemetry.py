"""What leaves the process, at which level, by which way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.adapter import MARKER, Adapter
from conformance.report import Case, Report
from otel_kernel.records import Trip

# Every trip at level full has these, whatever the runtime.
EVERY_RECORD: dict[str, type | object] = {
    "compute.kernel.name": str,
    "compute.kernel.runtime": str,
    "compute.kernel.layer": str,
    "compute.kernel.role": "trip",
    "compute.kernel.session.id": str,
    "compute.kernel.session.run": str,
    "compute.kernel.session.seq": int,
    "compute.kernel.record.version": 1,
    "compute.kernel.record.size": int,
    "compute.kernel.record.length": int,
    "compute.kernel.compilation.duration_ns": int,
    "compute.kernel.compilation.outcome_from": "runtime",
    "process.pid": int,
    "thread.id": int,
}


def check_attributes(expected: Mapping[str, type | object], attributes: Mapping[str, Any]) -> None:
    """Take away each expected attribute, after a look at its type or value; nothing must be left."""
    left = dict(attributes)
    for name, what in {**EVERY_RECORD, **expected}.items():
        names = [each for each in left if each == name or (name[-2:] == ".*" and each.startswith(name[:-1]))]

        assert [] != names, f"{name} is missing"

        for each in names:
            found = left.pop(each)
            if isinstance(what, type):
                assert what is type(found), f"{each} is {found!r}"
            else:
                assert what == found, f"{each} is {found!r}"

    assert {} == left


def test_the_attributes_of_a_compiled_trip(case: Case, adapter: Adapter) -> None:
    report = case.compiled_and_loaded[0]
    (trip,) = report.trips_of(adapter.main_kernel)

    check_attributes(adapter.compiled, report.span_of(trip)["attributes"])


def test_the_attributes_of_a_loaded_trip(case: Case, adapter: Adapter) -> None:
    report = case.compiled_and_loaded[1]
    (trip,) = report.trips_of(adapter.main_kernel)

    check_attributes(adapter.loaded, report.span_of(trip)["attributes"])


def everything_said(case: Case, report: Report) -> bytes:
    """Return all that left the process: spans, trips, measurements, log lines, output and the recording."""
    recordings = b"".join(path.read_bytes() for path in sorted(case.folder.glob("trips.db*")))

    assert recordings.startswith(b"SQLite format 3\0") or not report.trips

    return (report.text + report.stdout + report.stderr).encode() + recordings


def test_level_off_says_nothing(case: Case) -> None:
    report = case.run("telemetry:everything_at_a_level off")

    assert report.values["failed"] is True
    assert ([], [], []) == (report.trips, report.of("started"), report.spans)
    assert [] == [point for point in report.of("metric") if point["name"].endswith(".duration")]
    assert MARKER.encode() not in everything_said(case, report)


def test_level_basic_says_no_text_of_a_kernel(case: Case) -> None:
    report = case.run("telemetry:everything_at_a_level basic")

    assert report.values["failed"] is True
    assert {"record", "failed", "abandoned"} >= {trip.state for trip in report.trips}
    assert {"record", "failed"} <= {trip.state for trip in report.trips}
    assert MARKER.encode() not in everything_said(case, report)
    for span in report.spans:
        assert [] == span["events"]
        assert not {"compute.kernel.ir.text", "compute.kernel.source.text"} & span["attributes"].keys()


def test_level_full_says_the_texts(case: Case, adapter: Adapter) -> None:
    report = case.run("telemetry:everything_at_a_level full")

    (trip,) = report.trips_of(adapter.main_kernel)
    failed = [trip for trip in report.trips if trip.error_type == adapter.failure]

    assert MARKER in f"{trip.ir}{trip.source}"
    assert [] != failed
    for trip in failed:
        span = report.span_of(trip)

        assert MARKER in (trip.message or "")
        assert ["exception"] == [event["name"] for event in span["events"]]
        assert MARKER in span["events"][0]["attributes"]["exception.message"]


def test_the_duration_is_measured_once_a_trip(case: Case, adapter: Adapter) -> None:
    report = case.run("telemetry:everything_at_a_level basic")

    points = [
        point for point in report.of("metric") if point["name"] == "compute.kernel.compilation.duration"
    ]
    (oldest,) = [
        point for point in report.of("metric") if point["name"] == "compute.kernel.compilation.oldest_active"
    ]
    measured = [trip for trip in report.trips if trip.state != "abandoned"]

    assert len(measured) == sum(point["count"] for point in points)
    assert {adapter.runtime} == {point["attributes"]["compute.kernel.runtime"] for point in points}
    assert {"s"} == {point["unit"] for point in points}
    assert 0 == oldest["value"]
    for point in points:
        assert not {"compute.kernel.name", "compute.kernel.key.id"} & point["attributes"].keys()


def test_a_span_that_is_not_recorded_costs_no_sink_its_trip(case: Case, adapter: Adapter) -> None:
    report = case.run("telemetry:not_recording")

    (trip,) = report.trips_of(adapter.main_kernel)

    assert [] == report.of("span")
    assert "record" == trip.state
    assert MARKER in f"{trip.ir}{trip.source}"


def test_the_api_alone_is_enough(case: Case, adapter: Adapter) -> None:
    report = case.run("telemetry:without_an_sdk")

    (trip,) = report.trips_of(adapter.main_kernel)

    assert [] == report.values["sdk"]
    assert ("record", None, None) == (trip.state, trip.trace_id, trip.span_id)
    assert [] == report.logs


def check_exported(case: Case, level: str) -> None:
    report = case.run(f"telemetry:exported {level}")

    emitted = {trip.seq: trip for trip in report.trips}
    exported = {trip.seq: trip for trip in map(Trip.from_json, report.of("exported"))}

    assert {"record", "failed", "abandoned"} >= {trip.state for trip in emitted.values()}
    assert [] != [trip for trip in emitted.values() if trip.record is not None]
    assert emitted == exported


def test_a_record_from_its_span_is_the_one_that_was_emitted(case: Case) -> None:
    check_exported(case, "full")


def test_a_record_from_its_span_is_the_one_that_was_emitted_at_basic(case: Case) -> None:
    check_exported(case, "basic")
