"""Wrappers are put in place, taken away, share a point with those of others, and keep nothing alive."""

from __future__ import annotations

from conformance.adapter import Adapter
from conformance.report import Case

TRIPS = 10_000


def test_every_point_is_restored_by_identity(case: Case) -> None:
    report = case.run("patching:restored")

    for n in range(3):
        assert [] == report.values[f"not patched {n}"]
        assert [] == report.values[f"not restored {n}"]
    assert 3 == len(report.trips)
    assert [] == report.logs


def test_another_tool_wrapped_before(case: Case, adapter: Adapter) -> None:
    report = case.run("patching:another_tool_before")

    assert {adapter.main_kernel} == {trip.kernel for trip in report.trips}
    assert 1 == len(report.trips)
    assert 0 < report.values["with us"] < report.values["without us"]
    assert [] == report.values["kept"]


def test_another_tool_wrapped_after(case: Case, adapter: Adapter) -> None:
    report = case.run("patching:another_tool_after")

    assert adapter.main_kernel == report.trips[0].kernel
    assert 0 < report.values["with us"] < report.values["without us"]
    assert [] == report.values["kept"]
    # Then one more, after instrumenting once more below the other tool's wrapper.
    assert 2 == len(report.trips)
    assert [] == report.logs


def test_nothing_is_kept_alive_by_many_trips(case: Case) -> None:
    report = case.run(f"patching:kept_alive with {TRIPS}")

    assert report.values["trips"] > TRIPS
    assert 0 == report.values["alive"]
    assert [] == report.values["ours"]
