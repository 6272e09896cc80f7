"""What the two gauges observe, and when they observe nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from acme_instrumentor import compile_point, find_point, instrumentor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint

import otel_kernel
from otel_kernel import pipeline, semconv
from otel_kernel.instrumentor import KernelInstrumentor

ROOT = Path(otel_kernel.__file__).parents[1]

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


class Meters:
    """A meter provider of the program."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader], shutdown_on_exit=False)

    def observed(self, metric: str) -> list[NumberDataPoint]:
        """Return what a gauge observes just now."""
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for each in scope.metrics
            if each.name == metric
            for point in each.data.data_points
            if isinstance(point, NumberDataPoint)
        ]

    @property
    def oldest(self) -> list[float]:
        """What the gauge of the oldest trip in flight observes."""
        return [point.value for point in self.observed(semconv.OLDEST_ACTIVE_METRIC)]

    @property
    def points(self) -> dict[tuple[str, str], float]:
        """What the gauge of the points observes, by runtime and state."""
        found: dict[tuple[str, str], float] = {}
        for point in self.observed(semconv.POINTS_METRIC):
            attributes = point.attributes or {}
            found[str(attributes[semconv.RUNTIME]), str(attributes[semconv.POINTS_STATE])] = point.value
            assert {semconv.RUNTIME, semconv.POINTS_STATE} == attributes.keys()
        return found

    def count(self) -> tuple[int, int]:
        """Return how many values each of the two gauges observes."""
        return len(self.oldest), len(self.points)


@pytest.fixture
def meters() -> Meters:
    """The program's meter provider."""
    return Meters()


# The oldest trip in flight.


def test_without_a_trip_in_flight_the_age_is_zero(acme: Any, meters: Meters) -> None:
    instrumentor().instrument(meter_provider=meters.provider)
    before = meters.oldest
    acme.Compiler().compile("k")

    assert [0] == before == meters.oldest


def test_the_age_is_that_of_the_outermost_trip_and_grows(acme: Any, meters: Meters) -> None:
    instrumentor().instrument(meter_provider=meters.provider)
    made = acme.Compiler()
    ages: list[float] = []

    def body() -> None:
        ages.extend(meters.oldest)
        made.compile("inner", lambda: ages.extend(meters.oldest))
        ages.extend(meters.oldest)

    made.compile("outer", body)

    assert 3 == len(ages)
    assert 0 < ages[0] < ages[1] < ages[2]
    assert [0] == meters.oldest


def test_a_trip_on_another_thread_is_seen(acme: Any, meters: Meters) -> None:
    instrumentor().instrument(meter_provider=meters.provider)
    hangs, goes_on = threading.Event(), threading.Event()

    def body() -> None:
        hangs.set()
        goes_on.wait()

    thread = threading.Thread(target=acme.Compiler().compile, args=("k", body))
    thread.start()
    hangs.wait()
    (age,) = meters.oldest
    goes_on.set()
    thread.join()

    assert 0 < age


def test_observing_takes_no_lock_of_ours_and_starts_no_thread(acme: Any, meters: Meters) -> None:
    threads = threading.enumerate()
    instrumentor().instrument(meter_provider=meters.provider)
    with pipeline._lock:  # pyright: ignore[reportPrivateUsage] - the one lock there is
        found: list[float] = []
        observer = threading.Thread(target=lambda: found.extend([*meters.oldest, *meters.points.values()]))
        observer.start()
        observer.join()

    assert acme is not None
    assert [0, 2, 0] == found
    assert threads == threading.enumerate()


def test_a_forked_child_has_none_of_the_trips_in_flight(acme: Any, meters: Meters) -> None:
    instrumentor().instrument(meter_provider=meters.provider)
    codes: list[int] = []

    def body() -> None:
        child = os.fork()
        if child == 0:
            os._exit(0 if [0] == meters.oldest else 1)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    acme.Compiler().compile("k", body)

    assert [0] == codes


# The points.


def test_points_are_told_by_runtime_and_state(acme: Any, meters: Meters) -> None:
    instrumentor(compile_point(), find_point(name="gone", optional=True)).instrument(
        meter_provider=meters.provider
    )

    assert acme is not None
    assert {("acme", "patched"): 1, ("acme", "missing"): 1} == meters.points


@pytest.mark.parametrize(
    "refused",
    [
        lambda: instrumentor(requires="acme-compiler < 1"),
        lambda: instrumentor(compile_point(), find_point(name="gone")),
    ],
    ids=["version", "missing point"],
)
def test_a_runtime_that_is_left_alone_is_told_as_refused(acme: Any, meters: Meters, refused: Any) -> None:
    refused().instrument(meter_provider=meters.provider)

    assert acme is not None
    assert {("acme", "refused"): 1} == meters.points


def test_points_are_told_once_the_runtime_is_imported(acme_path: Path, meters: Meters) -> None:
    instrumentor().instrument(meter_provider=meters.provider)
    before = meters.points
    __import__("acme")

    assert acme_path.exists()
    assert {} == before
    assert {("acme", "patched"): 2, ("acme", "missing"): 0} == meters.points


def test_level_off_observes_nothing_until_another_level_is_set(acme: Any, meters: Meters) -> None:
    made = instrumentor()
    made.instrument(meter_provider=meters.provider, level="off")
    off = meters.count()
    made.instrument(level="basic")

    assert acme is not None
    assert (0, 0) == off
    assert (1, 2) == meters.count()


# Both.


class _Other(KernelInstrumentor):
    runtime = "other"
    module = "a_module_that_nobody_imports"
    requires = "other"


def test_gauges_go_on_until_the_last_instrumentor_has_ended(acme: Any, meters: Meters) -> None:
    first, second = instrumentor(), _Other()
    first.instrument(meter_provider=meters.provider)
    second.instrument()
    first.uninstrument()
    with_one_left = meters.count()
    second.uninstrument()
    with_none_left = meters.count()
    first.instrument()

    assert acme is not None
    assert (1, 0) == with_one_left
    assert (0, 0) == with_none_left
    assert (1, 2) == meters.count()


def test_gauges_follow_the_provider_there_and_back(acme: Any, caplog: pytest.LogCaptureFixture) -> None:
    here, there = Meters(), Meters()
    made = instrumentor()
    for present, other in ((here, there), (there, here), (here, there), (there, here)):
        made.instrument(meter_provider=present.provider)
        acme.Compiler().compile("k")

        assert ((1, 2), (0, 0)) == (present.count(), other.count())

    assert [] == caplog.records, "the SDK warns of an instrument that is made twice"


def test_a_provider_that_cannot_be_used_leaves_the_gauges_where_they_are(acme: Any, meters: Meters) -> None:
    made = instrumentor()
    made.instrument(meter_provider=meters.provider)
    with pytest.raises(TypeError):
        made.instrument(meter_provider="http://127.0.0.1:4318")

    assert acme is not None
    assert [0] == meters.oldest


GLOBAL = """
import logging, sys
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from otel_kernel.instrumentors.numba import NumbaInstrumentor

logging.basicConfig(stream=sys.stdout, format="%(message)s")
reader = InMemoryMetricReader()
def observed():
    names = [metric.name for resource in reader.get_metrics_data().resource_metrics
             for scope in resource.scope_metrics for metric in scope.metrics]
    print(*(name.rpartition(".")[2] for name in names))

if "before" in sys.argv:
    NumbaInstrumentor().instrument()
metrics.set_meter_provider(MeterProvider([reader]))
NumbaInstrumentor().instrument()
observed()
NumbaInstrumentor().instrument(meter_provider=metrics.get_meter_provider())
observed()
NumbaInstrumentor().instrument(meter_provider=MeterProvider())
NumbaInstrumentor().instrument(meter_provider=metrics.get_meter_provider())
observed()
print([name for name in sys.modules if name in ("numba", "jax", "triton", "torch")])
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_global_provider_is_the_same_however_it_is_given(when: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", GLOBAL, when],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert "" == done.stderr
    assert "oldest_active\n" * 3 + "[]\n" == done.stdout


def test_the_core_reads_the_state_of_points_without_importing_an_instrumentor() -> None:
    code = "import sys, otel_kernel.spans, otel_kernel.pipeline; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert [] == [name for name in done.stdout.split() if name.startswith("otel_kernel.instrumentor")]
