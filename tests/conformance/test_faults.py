"""A part of ours fails, and the program does not notice."""

from __future__ import annotations

from conformance.report import Case

LOGGED = "failed in otel-kernel"


def test_readers_that_raise(case: Case) -> None:
    report = case.run("faults:raising_readers", faults=True)
    count = len(report.values["lines"])
    case.reset()
    without = case.run(f"faults:without_readers {count}")

    assert count > 10
    assert without.values["seen"] == report.values["seen"]
    # One line in the log for every fault, and a span that has ended for every kernel whose trip began.
    assert count == len(report.logs)
    assert count == len([line for line in report.logs if LOGGED in line])
    of_trips = [span for span in report.spans if span["attributes"]["compute.kernel.role"] == "trip"]
    assert len(report.of("started")) == len(report.trips) == len(of_trips)
    assert {"UNSET"} == {span["status"] for span in report.spans}
    assert {"record", "abandoned"} >= {trip.state for trip in report.trips}
    assert {None, "unread"} == {trip.abandoned.value if trip.abandoned else None for trip in report.trips}


def check_part(case: Case, script: str, lines: int) -> None:
    without = case.run("faults:without_faults")
    case.reset()
    report = case.run(f"faults:{script}", faults=True)

    assert without.values == report.values
    assert [] != report.trips
    assert len(report.of("started")) == len(report.trips)
    assert lines == len(report.logs)
    assert {True} == {LOGGED in line for line in report.logs}


def test_a_sink_that_raises(case: Case) -> None:
    check_part(case, "raising_sink", lines=2)


def test_an_exporter_that_raises(case: Case) -> None:
    check_part(case, "raising_exporter", lines=1)


def test_a_span_that_cannot_start(case: Case) -> None:
    check_part(case, "raising_start", lines=1)
