"""More than one thread or process."""

from __future__ import annotations

from typing import Any

from conformance.adapter import Adapter
from conformance.report import Case, Report
from otel_kernel.records import Trip


def under(report: Report, span: dict[str, Any]) -> list[Any]:
    """Return the kernels of the spans of ours below a span of the program, at any depth."""
    below = [each for each in report.spans if each["parent_id"] == span["span_id"]]
    return [
        name for each in below for name in (each["attributes"]["compute.kernel.name"], *under(report, each))
    ]


def test_two_threads_on_one_kernel(case: Case, adapter: Adapter) -> None:
    report = case.run("processes:two_threads_on_one_kernel")

    records = [trip for trip in report.trips_of(adapter.main_kernel) if trip.state == "record"]

    assert report.values["results"]["one"] == report.values["results"]["two"]
    assert adapter.trips_of_two_threads == len(records)
    assert {0} == {
        trip.seq for trip in records if trip.parent_seq is None
    } or adapter.trips_of_two_threads > 1


def test_two_threads_on_two_kernels(case: Case, adapter: Adapter) -> None:
    report = case.run("processes:two_threads_on_two_kernels")

    programs = {span["name"]: span for span in report.of("span") if span["scope"] == "program"}

    assert adapter.main_kernel in under(report, programs["one"])
    assert adapter.second_kernel in under(report, programs["two"])
    assert adapter.second_kernel not in under(report, programs["one"])
    assert adapter.main_kernel not in under(report, programs["two"])
    assert sorted(range(len(report.trips))) == sorted(trip.seq for trip in report.trips)


def of_process(report: Report, pid: int) -> list[Trip]:
    return [Trip.from_json(line.value) for line in report.lines if (line.kind, line.pid) == ("trip", pid)]


def test_a_forked_child_has_a_session_of_its_own(case: Case, adapter: Adapter) -> None:
    report = case.run("processes:forked")

    parent, child = (of_process(report, pid) for pid in report.values["pids"])

    assert {adapter.main_kernel, adapter.second_kernel} == {trip.kernel for trip in parent}
    assert {adapter.second_kernel} == {trip.kernel for trip in child}
    assert list(range(len(child))) == sorted(trip.seq for trip in child)
    assert child[0].session.id != parent[0].session.id
    assert child[0].session.run == parent[0].session.run
    assert 1 == len({trip.session for trip in parent})
    assert {report.values["pids"][1]} == {trip.attributes["process.pid"] for trip in child}


def test_a_child_that_was_forked_inside_a_trip(case: Case, adapter: Adapter) -> None:
    report = case.run("processes:forked_inside_a_trip")

    parent, child = (of_process(report, pid) for pid in report.values["pids"])

    assert adapter.main_kernel in {trip.kernel for trip in parent}
    assert {adapter.second_kernel} == {trip.kernel for trip in child}
    assert {None} == {trip.parent_seq for trip in child if trip.kernel == adapter.second_kernel}


def test_a_spawned_child_belongs_to_the_run(case: Case, adapter: Adapter) -> None:
    report = case.run("processes:spawned")

    parent, child = (of_process(report, pid) for pid in report.values["pids"])

    assert {adapter.main_kernel} == {trip.kernel for trip in parent}
    assert {adapter.second_kernel} == {trip.kernel for trip in child}
    assert child[0].session.id != parent[0].session.id
    assert child[0].session.run == parent[0].session.run
