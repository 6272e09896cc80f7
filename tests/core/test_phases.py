"""The phase of the program, and when the process that asks for it has started."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from acme_instrumentor import instrumentor
from opentelemetry.sdk.metrics.export import HistogramDataPoint
from telemetry import Telemetry

import otel_kernel
from otel_kernel import phases, semconv

ROOT = Path(otel_kernel.__file__).parents[1]
TESTS = ROOT / "tests"

PROGRAM = """
import os, sys, time
mode, *arguments = sys.argv[1:]
if mode == "late":
    time.sleep(0.3)  # all of it before otel-kernel is imported
if mode == "exec":
    time.sleep(0.3)
    os.execl(sys.executable, sys.executable, "-c", os.environ["PROGRAM"], "plain")
import otel_kernel
from acme_instrumentor import AcmeInstrumentor
import acme
AcmeInstrumentor().instrument()
if mode == "named":
    acme.build("before")
    otel_kernel.phase("serving")
acme.build("last")
"""


def phases_of(folder: Path, mode: str, serving_after: str | None = None) -> list[tuple[str, str | None]]:
    """Return kernel and phase of each trip in the recording of a program."""
    site = folder / "site"
    (site / "acme_compiler-1.2.dist-info").mkdir(parents=True)
    metadata = "Metadata-Version: 2.1\nName: acme-compiler\nVersion: 1.2\n"
    (site / "acme_compiler-1.2.dist-info" / "METADATA").write_text(metadata)
    changes = {
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, TESTS, TESTS / "core" / "runtime", site))),
        "OTEL_KERNEL_RECORDING": str(folder / "trips.db"),
        "PROGRAM": PROGRAM,
    }
    if serving_after is not None:
        changes["OTEL_KERNEL_SERVING_AFTER"] = serving_after
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, mode],
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (0, "") == (done.returncode, done.stderr)
    with closing(sqlite3.connect(folder / "trips.db")) as connection:
        return list(connection.execute("SELECT kernel, phase FROM records ORDER BY started_ns"))


@pytest.mark.parametrize(
    ("mode", "serving_after", "expected"),
    [
        ("plain", None, [("acme.last", None)]),
        ("plain", "0", [("acme.last", "serving")]),
        ("plain", "100000", [("acme.last", "startup")]),
        ("late", "0.25", [("acme.last", "serving")]),
        ("exec", "0.25", [("acme.last", "serving")]),
        ("named", None, [("acme.before", None), ("acme.last", "serving")]),
        ("named", "100000", [("acme.before", "startup"), ("acme.last", "serving")]),
    ],
)
def test_a_process_tells_its_phase(
    tmp_path: Path, mode: str, serving_after: str | None, expected: list[tuple[str, str | None]]
) -> None:
    assert expected == phases_of(tmp_path, mode, serving_after)


FORK = """
import os, time
from otel_kernel import phases

time.sleep(0.3)
phases.age()
forked = time.clock_gettime(time.CLOCK_BOOTTIME)
child = os.fork()
if child:
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
age = phases.age()
started = time.clock_gettime(time.CLOCK_BOOTTIME) - age
os._exit(0 if forked - 1 / os.sysconf("SC_CLK_TCK") <= started else 1)
"""


def test_a_forked_child_counts_from_its_own_start() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (0, "") == (done.returncode, done.stderr)


def test_the_phase_is_on_the_span_on_the_measurement_and_in_the_trip(acme: Any, telemetry: Telemetry) -> None:
    instrumentor().instrument(serving_after=0)
    acme.build("f")
    otel_kernel.phase("warm-up")
    acme.build("g")
    data = telemetry.reader.get_metrics_data()
    measured = [
        (point.attributes or {}).get(semconv.PHASE)
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
        if isinstance(point, HistogramDataPoint)
    ]

    assert ["serving", "warm-up"] == [(span.attributes or {})[semconv.PHASE] for span in telemetry.spans]
    assert ["serving", "warm-up"] == [trip.attributes[semconv.PHASE] for trip in telemetry.trips]
    assert ["serving", "warm-up"] == measured


@pytest.mark.parametrize("name", ["", None, 3, b"serving"])
def test_a_phase_is_a_text(name: Any) -> None:
    with pytest.raises(ValueError, match="a phase is a non-empty str, got "):
        otel_kernel.phase(name)


def test_a_phase_that_is_no_valid_text_costs_no_trip(acme: Any, telemetry: Telemetry) -> None:
    instrumentor().instrument()
    otel_kernel.phase("warm\udc80")
    acme.build("f")

    assert ["warm\\udc80"] == [trip.attributes[semconv.PHASE] for trip in telemetry.trips]


# The age of a process.


def test_the_age_is_between_what_its_parent_saw_and_zero() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    code = "from otel_kernel import phases; print(phases.age())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    tick = 1 / os.sysconf("SC_CLK_TCK")

    assert 0 <= float(done.stdout) <= time.clock_gettime(time.CLOCK_BOOTTIME) - before + tick


def test_the_start_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[float] = []

    def start_of_process() -> float:
        reads.append(0.0)
        return 0.0

    monkeypatch.setattr(phases, "start_of_process", start_of_process)
    monkeypatch.setattr(phases, "_started", None)
    ages = [phases.age() for _ in range(3)]

    assert 1 == len(reads)
    assert sorted(ages) == ages


def _line(command: str, start: object) -> str:
    return f"7 ({command}) R {' '.join(['0'] * 18)} {start} 0 0\n"


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda: _line("python", 250), 250 / os.sysconf("SC_CLK_TCK")),
        (lambda: _line("a) R 1 (b", 250), 250 / os.sysconf("SC_CLK_TCK")),
        (lambda: _line("python", 0), None),
        (lambda: _line("python", 10**18), None),
        (lambda: _line("python", "soon"), None),
        (lambda: "7 (python) R 1", None),
        (lambda: "", None),
        (None, None),
    ],
    ids=["usual", "odd name", "tells nothing", "time of a host", "no number", "cut", "empty", "missing"],
)
def test_a_start_that_cannot_be_told_is_that_of_our_import(
    tmp_path: Path, write: Callable[[], str] | None, expected: float | None
) -> None:
    stat = tmp_path / "stat"
    if write is not None:
        stat.write_text(write())
    found = phases.start_of_process(str(stat))

    assert (expected if expected is not None else phases._imported) == found  # pyright: ignore[reportPrivateUsage] - the fallback
    assert 0 < found <= time.clock_gettime(time.CLOCK_BOOTTIME)
