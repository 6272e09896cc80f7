"""Exceptions that pass through us."""

from __future__ import annotations

from conformance.adapter import MARKER, Adapter
from conformance.report import Case


def test_a_failed_compilation_passes_untouched(case: Case, adapter: Adapter) -> None:
    without = case.run("failures:failing_without_us")
    report = case.run("failures:failing")

    assert report.values["count"] > 0
    assert report.values["same"] is True
    assert without.values["raised"] == report.values["raised"]
    assert MARKER in report.values["raised"][0]["text"]
    assert without.values["in flight"] == report.values["in flight"]
    for below, above in zip(*[iter(report.of("passing"))] * 2, strict=True):
        assert below == above


def test_a_failed_compilation_is_a_trip_without_outcome(case: Case, adapter: Adapter) -> None:
    report = case.run("failures:failing")

    failed = [trip for trip in report.trips if trip.state == "failed"]
    spans = [report.span_of(trip) for trip in failed]

    assert {adapter.failure} == {trip.error_type for trip in failed}
    assert {"ERROR"} == {span["status"] for span in spans}
    assert {adapter.failure} == {span["attributes"]["error.type"] for span in spans}
    for span in spans:
        assert span["description"].startswith(adapter.failure)
        assert "compute.kernel.compilation.outcome" not in span["attributes"]
        assert [] == span["events"]
    assert [] == [trip for trip in report.trips if trip.state == "record"]


def test_control_flow_is_no_failure(case: Case, adapter: Adapter) -> None:
    without = case.run("failures:control_flow_without_us")
    report = case.run("failures:control_flow")

    abandoned = [trip for trip in report.trips if trip.state == "abandoned"]
    measured = sum(
        point["count"]
        for point in report.of("metric")
        if point["name"] == "compute.kernel.compilation.duration"
    )

    assert without.values == report.values
    assert adapter.abandoned == {trip.abandoned.value for trip in abandoned if trip.abandoned}
    assert [] == [trip for trip in report.trips if trip.state == "failed"]
    assert {"UNSET"} == {span["status"] for span in report.spans}
    for trip in abandoned:
        assert "compute.kernel.compilation.outcome" not in report.span_of(trip)["attributes"]
    assert len(report.trips) - len(abandoned) == measured


def test_the_context_of_the_program_is_as_it_was(case: Case) -> None:
    report = case.run("failures:program_span")

    programs = [span for span in report.of("span") if span["scope"] == "program"]
    top = [span for span in report.spans if span["parent_id"] == programs[0]["span_id"]]

    assert 1 == len(programs)
    assert {programs[0]["trace_id"]} == {span["trace_id"] for span in report.spans}
    assert [] != top
    assert report.values["current"] is True
