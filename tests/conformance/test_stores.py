"""Stores that are damaged, read-only or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.adapter import Adapter, After, Damage
from conformance.report import Case, Report
from otel_kernel.records import Trip


def check_after(after: After, report: Report, kernel: str) -> Trip:
    """Compare what became of the last trip of a kernel with what the adapter expects."""
    trip = report.trips_of(kernel)[-1]
    span = report.span_of(trip)
    if after.startswith("raises "):
        raised = after.removeprefix("raises ")

        assert raised == report.values["raised"]
        assert ("failed", raised) == (trip.state, trip.error_type)
        assert "ERROR" == span["status"]
        assert "compute.kernel.compilation.outcome" not in span["attributes"]
    else:
        assert report.values["raised"] is None
        assert ("record", after) == (trip.state, trip.outcome.value if trip.outcome else None)
        assert "UNSET" == span["status"]
    return trip


def damage(adapter: Adapter, entry: Path, kind: Damage) -> None:
    if kind == "deleted":
        entry.unlink()
    elif kind == "emptied":
        entry.write_bytes(b"")
    else:
        entry.write_bytes(adapter.corrupt(entry.read_bytes()))


def check_damage(case: Case, adapter: Adapter, kind: Damage) -> None:
    before = case.run("stores:main").trips_of(adapter.main_kernel)[-1]
    entries = adapter.entries(case.store)

    assert [] != entries

    for entry in entries:
        damage(adapter, entry, kind)
    trip = check_after(adapter.damaged[kind], case.run("stores:main"), adapter.main_kernel)

    assert adapter.rejected.get(kind, False) == ("compute.kernel.store.rejected" in trip.attributes)
    if trip.outcome is not None:
        assert before.key == trip.key


def test_a_corrupted_entry(case: Case, adapter: Adapter) -> None:
    check_damage(case, adapter, "corrupted")


def test_an_emptied_entry(case: Case, adapter: Adapter) -> None:
    check_damage(case, adapter, "emptied")


def test_a_deleted_entry(case: Case, adapter: Adapter) -> None:
    check_damage(case, adapter, "deleted")


def test_a_read_only_store(case: Case, adapter: Adapter) -> None:
    case.run("stores:main")
    report = case.run("stores:second_in_a_read_only_store")

    (loaded,) = report.trips_of(adapter.main_kernel)
    trip = check_after(adapter.read_only, report, adapter.second_kernel)

    assert "loaded" == (loaded.outcome.value if loaded.outcome else None)
    assert trip.attributes["compute.kernel.store.stored"] is False
    assert trip.attributes["compute.kernel.store.reason"]


def test_a_file_in_place_of_the_store(case: Case, adapter: Adapter) -> None:
    report = case.run("stores:second_with_a_file_for_a_store")

    trip = check_after(adapter.blocked, report, adapter.second_kernel)

    assert trip.attributes["compute.kernel.store.stored"] is False
    assert trip.attributes["compute.kernel.store.reason"]


def test_an_artifact_that_cannot_be_loaded(case: Case, adapter: Adapter) -> None:
    report = case.run("stores:unloadable")

    assert adapter.load_failure == report.values["raised"]
    assert adapter.load_failure == report.trips[-1].error_type
    assert [] == [trip for trip in report.trips if trip.outcome is not None]
    assert ["ERROR"] == [span["status"] for span in report.spans]


@pytest.fixture(autouse=True)
def _leave_removable(tmp_path: Path) -> object:
    """Let pytest remove what a case has made read-only."""
    yield
    for folder in tmp_path.rglob("*"):
        if folder.is_dir():
            folder.chmod(0o755)
