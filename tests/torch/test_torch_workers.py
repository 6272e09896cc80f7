"""Kernels of Triton that Inductor compiles here and in its workers: each is told of once, and here."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from torch_programs import PROGRAMS, ROOT, Report, run_program

from otel_kernel.records import CompilationOutcome, Trip

COMPILED, LOADED = CompilationOutcome.COMPILED, CompilationOutcome.LOADED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("triton") is None, reason="Inductor compiles no such kernel without Triton"),
]


def of(trip: Trip, name: str) -> Any:
    return trip.attributes.get(f"compute.kernel.{name}")


def only(report: Report, part: str) -> Trip:
    (trip,) = report.trips(part)
    return trip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("booted")


@pytest.fixture(scope="module")
def booted(folder: Path) -> Report:
    """Otel-kernel is in the workers as well."""
    return run_program(
        folder,
        "workers.py",
        PYTHONPATH=os.pathsep.join(
            map(str, (ROOT / "otel_kernel" / "sitecustomize", PROGRAMS, ROOT, ROOT / "tests"))
        ),
        OTEL_KERNEL_BOOT="1",
        OTEL_KERNEL_RECORDING=str(folder / "recording.db"),
    )


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Only the program itself is instrumented."""
    return run_program(tmp_path_factory.mktemp("alone"), "workers.py")


@pytest.fixture(params=["booted", "alone"])
def report(request: pytest.FixtureRequest) -> Report:
    found: Report = request.getfixturevalue(request.param)
    return found


def test_a_kernel_that_is_compiled_here_is_one_trip(report: Report) -> None:
    trip = only(report, "here")

    assert ("torch.inductor.triton_kernel", "triton_poi_here", COMPILED) == (
        trip.layer,
        trip.kernel,
        trip.outcome,
    )
    assert "runtime" == of(trip, "compilation.outcome_from")
    assert ("cuda:90", "cuda:0", True) == (of(trip, "target"), of(trip, "device"), of(trip, "device_loaded"))
    assert "parent" == of(trip, "key.component.made_in")
    assert {"ttir", "ttgir", "llir", "ptx", "cubin", "load"} <= {
        name.rpartition(".")[2] for name in trip.attributes if ".stage." in name
    }
    assert 64 == len(of(trip, "store.entry"))  # Triton's own key


def test_a_kernel_in_memory_is_no_trip(report: Report) -> None:
    assert [] == report.trips("here, in memory")


def test_a_kernel_that_a_worker_compiles_is_one_trip_with_the_time_of_the_worker(report: Report) -> None:
    trip = only(report, "in a worker")

    assert ("triton_poi_there", COMPILED, True) == (trip.kernel, trip.outcome, of(trip, "device_loaded"))
    assert "worker" == of(trip, "key.component.made_in")
    assert 0 < of(trip, "stage.worker") <= (trip.duration_ns or 0)
    assert of(trip, "stage.queue") + of(trip, "stage.worker") <= (trip.duration_ns or 0)


@pytest.mark.parametrize(
    ("part", "like"),
    [
        ("in a worker, stored", "in a worker"),
        ("in a worker, stored by this process", "here"),
    ],
)
def test_a_kernel_that_a_worker_finds_in_the_store_is_loaded(report: Report, part: str, like: str) -> None:
    before, after = only(report, like), only(report, part)

    assert LOADED is after.outcome
    assert before.key == after.key
    assert before.key is not None
    assert of(before, "identity") == of(after, "identity")


def test_a_worker_with_otel_kernel_in_it_says_what_it_did(booted: Report, alone: Report) -> None:
    for part in ("in a worker", "in a worker, stored"):
        assert "worker" == of(only(booted, part), "compilation.outcome_from")
        assert str(of(only(booted, part), "key.component.compiler")).startswith("ptxas ")
        assert "inferred" == of(only(alone, part), "compilation.outcome_from")


def test_what_it_says_does_not_stay_on_the_kernel(report: Report) -> None:
    assert [] == report.value("ours left on it in in a worker")


def test_a_failure_in_a_worker_names_its_own_class(report: Report) -> None:
    trip = only(report, "wrong in a worker")
    (span,) = report.spans("wrong in a worker")

    assert "SubprocException" == report.value("raised")
    assert ("failed", None) == (trip.state, trip.outcome)
    assert str(trip.error_type).endswith("SubprocException")
    assert "at worker: triton.compiler.errors.CompilationError" in span["description"]


def test_workers_tell_nothing(booted: Report, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "recording.db")) as connection:
        pids = {row[0] for row in connection.execute("SELECT DISTINCT pid FROM sessions")}
        count = connection.execute("SELECT count(*) FROM trips").fetchone()[0]

    assert {trip.attributes["process.pid"] for trip in booted.trips()} == pids
    assert len(booted.trips()) == count


def test_no_text_of_a_kernel_appears(report: Report) -> None:
    assert [] == [line for line in map(str, report.lines) if "otk_secret_marker" in line]
