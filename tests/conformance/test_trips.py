"""What is a trip, and what a launch costs."""

from __future__ import annotations

import importlib
import re
from itertools import zip_longest

from conformance.adapter import Adapter
from conformance.report import Case, Report
from otel_kernel.records import CompilationOutcome, Trip

HEX32 = re.compile(r"[0-9a-f]{32}").fullmatch


def only_trip(report: Report, kernel: str) -> Trip:
    (trip,) = report.trips_of(kernel)
    return trip


def test_a_new_kernel_is_compiled(case: Case, adapter: Adapter) -> None:
    report = case.compiled_and_loaded[0]

    trip = only_trip(report, adapter.main_kernel)
    span = report.span_of(trip)
    attributes = span["attributes"]

    assert CompilationOutcome.COMPILED is trip.outcome
    assert trip.key is not None
    assert trip.ir is not None or trip.source is not None
    assert (f"compile {adapter.main_kernel}", "INTERNAL", f"otel_kernel.{adapter.runtime}") == (
        span["name"],
        span["kind"],
        span["scope"],
    )
    assert ("UNSET", None, []) == (span["status"], span["description"], span["events"])
    assert "compiled" == attributes["compute.kernel.compilation.outcome"]
    assert trip.started_ns == span["start_ns"]
    assert trip.duration_ns == attributes["compute.kernel.compilation.duration_ns"]
    assert trip.duration_ns == span["end_ns"] - span["start_ns"]
    assert [] == report.logs


def test_a_trip_starts_before_it_ends(case: Case, adapter: Adapter) -> None:
    report = case.compiled_and_loaded[0]

    (started,) = [
        Trip.from_json(value) for value in report.of("started") if value["kernel"] == adapter.main_kernel
    ]
    trip = only_trip(report, adapter.main_kernel)

    assert "unfinished" == started.state
    assert (trip.session, trip.seq, trip.started_ns, trip.span_id) == (
        started.session,
        started.seq,
        started.started_ns,
        started.span_id,
    )


def test_a_hit_in_memory_is_no_trip(case: Case) -> None:
    once = case.compiled_and_loaded[0]
    often = case.run("trips:main_again_and_again")

    assert [once.values["main"]] == often.values["results"]
    assert len(once.trips) == len(often.trips)
    assert len(once.spans) == len(often.spans)


def test_a_launch_calls_as_much_python_as_without_us(case: Case) -> None:
    without = case.run("trips:launches_without_us")
    with_us = case.run("trips:launches_with_us")

    assert len(without.values["calls"]) >= 100
    assert without.values["calls"] == with_us.values["calls"]


def test_nothing_on_the_launch_path_differs(case: Case, adapter: Adapter) -> None:
    without = case.run("trips:launches_without_us").values["attributes"]
    with_us = case.run("trips:launches_with_us").values["attributes"]
    module, _, name = adapter.instrumentor.partition(":")
    importlib.import_module(adapter.module)
    points = {str(point) for point in getattr(importlib.import_module(module), name)().points()}

    assert len(without[0]) > 0
    for before, after in zip_longest(without, with_us):
        assert before.keys() == after.keys()
        assert {name for name in before if before[name] != after[name]} <= points


def test_a_stored_kernel_is_loaded_in_a_new_process(case: Case, adapter: Adapter) -> None:
    first, second = case.compiled_and_loaded

    compiled = only_trip(first, adapter.main_kernel)
    loaded = only_trip(second, adapter.main_kernel)

    assert first.values == second.values
    assert CompilationOutcome.LOADED is loaded.outcome
    assert compiled.key == loaded.key
    assert compiled.attributes["compute.kernel.identity"] == loaded.attributes["compute.kernel.identity"]
    assert compiled.session.id != loaded.session.id
    assert loaded.ir is None
    assert "UNSET" == second.span_of(loaded)["status"]


def test_a_kernel_that_is_not_stored_is_compiled_in_every_process(case: Case, adapter: Adapter) -> None:
    for _ in range(2):
        report = case.run("trips:unstored")
        trip = report.trips[-1]

        assert CompilationOutcome.COMPILED is trip.outcome
        if adapter.key_of_unstored == "present":
            assert trip.key is not None
        else:
            assert trip.key is None
            assert adapter.key_of_unstored == trip.attributes["compute.kernel.key.absent_reason"]
            assert "compute.kernel.store.stored" not in trip.attributes


def test_a_suppressed_call_is_no_trip(case: Case, adapter: Adapter) -> None:
    report = case.run("trips:suppressed")

    assert {adapter.second_kernel} == {trip.kernel for trip in report.trips}
    assert {adapter.second_kernel} == {
        span["attributes"]["compute.kernel.name"] for span in report.trip_spans
    }
    assert [] == [started for started in report.of("started") if started["kernel"] == adapter.main_kernel]
