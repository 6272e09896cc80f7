from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from acme_instrumentor import instrumentor
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import TracerProvider
from telemetry import CollectingSink, Telemetry

from otel_kernel import pipeline, semconv
from otel_kernel.instrumentor import KernelInstrumentor
from otel_kernel.recording.writer import RecordingSink
from otel_kernel.records import RecordLevel, Trip
from otel_kernel.texts import TextFiles

ENDPOINT = "http://127.0.0.1:1"
"""Nobody listens there; nothing is sent in these tests."""


class _FailingSink(CollectingSink):
    def started(self, trip: Trip) -> None:
        super().started(trip)
        raise OSError("no space left on device")

    def finished(self, trip: Trip) -> None:
        super().finished(trip)
        raise OSError("no space left on device")


@pytest.fixture
def instrumented(acme: Any) -> Iterator[KernelInstrumentor]:
    """The instrumentor of acme, at work."""
    assert acme
    made = instrumentor()
    made.instrument()
    yield made
    made.uninstrument()


@pytest.fixture
def private() -> Iterator[Callable[[], TracerProvider]]:
    """Returns the private provider of the moment; all of them are shut down at the end."""
    made: list[TracerProvider] = []

    def current() -> TracerProvider:
        provider = pipeline.current().spans[1].tracer_provider
        assert isinstance(provider, TracerProvider)
        made.append(provider)
        return provider

    yield current
    for provider in made:
        provider.shutdown()


def gauges(reader: InMemoryMetricReader) -> list[float | int]:
    """Return what the gauge of the oldest trip in flight observes."""
    data = reader.get_metrics_data()
    return [
        point.value
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == semconv.OLDEST_ACTIVE_METRIC
        for point in metric.data.data_points
        if isinstance(point, NumberDataPoint)
    ]


def test_the_first_use_reads_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OTEL_KERNEL_LEVEL", "full")
    monkeypatch.setenv("OTEL_KERNEL_TEXT_FILES", str(tmp_path))
    state = pipeline.current()

    assert RecordLevel.FULL is state.level
    assert state.texts is not None
    assert tmp_path == state.texts.folder
    assert state is pipeline.current()


def test_code_wins_over_the_environment_and_leaves_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_KERNEL_LEVEL", "full")
    monkeypatch.setenv("OTEL_KERNEL_INLINE_LIMIT", "7")
    state = pipeline.configure(level="off")

    assert (RecordLevel.OFF, 7) == (state.level, state.options.inline_limit)


def test_without_options_there_is_one_provider_and_no_sink() -> None:
    state = pipeline.current()

    assert (1, (), None) == (len(state.spans), state.sinks, state.texts)
    assert not state.spans[0].private


def test_a_bad_option_is_said_in_one_line_and_costs_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    state = pipeline.configure(level="loud", inline_limit=7)

    assert (RecordLevel.BASIC, 7) == (state.level, state.options.inline_limit)
    (said,) = caplog.records
    assert logging.ERROR == said.levelno
    assert "'loud'" in said.message


def test_configuring_again_keeps_providers_sinks_and_options(telemetry: Telemetry) -> None:
    before = pipeline.configure(inline_limit=7)
    after = pipeline.configure(level="full")

    assert before.spans == after.spans
    assert (telemetry.sink,) == after.sinks
    assert (RecordLevel.FULL, 7) == (after.level, after.options.inline_limit)


def test_a_new_provider_takes_the_trips_from_then_on(
    acme: Any, telemetry: Telemetry, instrumented: KernelInstrumentor
) -> None:
    other = Telemetry(CollectingSink())
    acme.build("f")
    instrumented.instrument(tracer_provider=other.tracer_provider)
    acme.build("g")

    assert ["compile acme.f"] == [span.name for span in telemetry.spans]
    assert ["compile acme.g"] == [span.name for span in other.spans]
    assert ["acme.f", "acme.g"] == [trip.kernel for trip in telemetry.trips]


def test_a_trip_in_flight_stays_with_the_provider_it_began_with(
    acme: Any, telemetry: Telemetry, instrumented: KernelInstrumentor
) -> None:
    other = Telemetry(CollectingSink())
    acme.build("f", lambda: instrumented.instrument(tracer_provider=other.tracer_provider))

    assert ["compile acme.f"] == [span.name for span in telemetry.spans]
    assert [] == other.spans


def test_the_gauge_moves_to_a_new_meter_provider() -> None:
    first, second = InMemoryMetricReader(), InMemoryMetricReader()
    pipeline.configure(meter_provider=MeterProvider([first], shutdown_on_exit=False))
    assert [0] == gauges(first)
    pipeline.configure(meter_provider=MeterProvider([second], shutdown_on_exit=False))

    assert [] == gauges(first)
    assert [0] == gauges(second)


def test_giving_the_same_providers_again_changes_nothing(telemetry: Telemetry) -> None:
    before = pipeline.current()
    after = pipeline.configure(
        tracer_provider=telemetry.tracer_provider, meter_provider=telemetry.meter_provider
    )

    assert before.spans == after.spans
    assert [0] == gauges(telemetry.reader)


def test_a_new_tracer_provider_leaves_the_gauge(telemetry: Telemetry) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    program = pipeline.configure(tracer_provider=provider).spans[0]

    assert (provider, telemetry.meter_provider) == (program.tracer_provider, program.meter_provider)
    assert [0] == gauges(telemetry.reader)


def test_a_new_meter_provider_leaves_the_tracer_provider(telemetry: Telemetry) -> None:
    meters = MeterProvider(shutdown_on_exit=False)
    program = pipeline.configure(meter_provider=meters).spans[0]

    assert (telemetry.tracer_provider, meters) == (program.tracer_provider, program.meter_provider)


def test_an_endpoint_adds_a_private_provider_beside_the_programs(
    telemetry: Telemetry, private: Callable[[], TracerProvider]
) -> None:
    program, ours = pipeline.configure(otlp=ENDPOINT).spans

    assert (telemetry.tracer_provider, False) == (program.tracer_provider, program.private)
    assert ours.private
    assert private() is not telemetry.tracer_provider
    assert trace.get_tracer_provider() is not private()


def test_the_same_endpoint_keeps_its_provider_and_another_one_replaces_it(
    private: Callable[[], TracerProvider],
) -> None:
    pipeline.configure(otlp=ENDPOINT)
    first = private()
    pipeline.configure(otlp=ENDPOINT, level="full")
    assert first is private()
    pipeline.configure(otlp="http://127.0.0.1:2")
    assert first is not private()
    state = pipeline.configure(otlp=None)

    assert 1 == len(state.spans)


def test_a_new_provider_of_the_program_leaves_the_private_one(
    telemetry: Telemetry, private: Callable[[], TracerProvider]
) -> None:
    pipeline.configure(otlp=ENDPOINT)
    ours = private()
    pipeline.configure(tracer_provider=TracerProvider(shutdown_on_exit=False))

    assert ours is private()


@pytest.mark.parametrize(
    "missing", ["opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk"]
)
def test_a_missing_exporter_is_said_once_and_costs_the_export_only(
    acme: Any,
    telemetry: Telemetry,
    instrumented: KernelInstrumentor,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    missing: str,
) -> None:
    for name in [name for name in sys.modules if name.startswith(f"{missing}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    instrumented.instrument(otlp=ENDPOINT)
    acme.build("f")

    assert 1 == len(telemetry.spans)
    (said,) = caplog.records
    assert said.message.startswith(f"nothing is exported to {ENDPOINT}: ")
    assert said.message.endswith('; pip install "otel-kernel[otlp]"')
    assert missing in said.message


def test_a_recording_is_a_sink_until_it_is_taken_back(tmp_path: Path) -> None:
    (sink,) = pipeline.configure(recording=tmp_path / "trips.db").sinks
    assert isinstance(sink, RecordingSink)
    assert (sink,) == pipeline.configure(recording=tmp_path / "trips.db", level="full").sinks
    (other,) = pipeline.configure(recording=tmp_path / "others.db").sinks
    assert sink is not other

    assert () == pipeline.configure(recording=None).sinks


def test_a_recording_leaves_the_other_sinks(tmp_path: Path, telemetry: Telemetry) -> None:
    assert 2 == len(pipeline.configure(recording=tmp_path / "trips.db").sinks)
    assert (telemetry.sink,) == pipeline.configure(recording=None).sinks


def test_a_folder_of_texts_is_set_and_taken_back(tmp_path: Path) -> None:
    texts = pipeline.configure(text_files=tmp_path).texts

    assert isinstance(texts, TextFiles)
    assert tmp_path == texts.folder
    assert pipeline.configure(text_files=None).texts is None


def test_only_sinks_that_want_starts_are_told_of_them(acme: Any, instrumented: KernelInstrumentor) -> None:
    wants, other = CollectingSink(wants_start=True), CollectingSink()
    pipeline.add_sink(wants)
    pipeline.add_sink(other)
    acme.build("f")

    assert (1, 0) == (len(wants.starts), len(other.starts))
    assert wants.trips == other.trips
    assert ("unfinished", "record") == (wants.starts[0].state, wants.trips[0].state)
    started, finished = wants.starts[0], wants.trips[0]
    assert (started.session, started.seq, started.started_ns) == (
        finished.session,
        finished.seq,
        finished.started_ns,
    )


def test_a_sink_that_was_removed_is_told_nothing_more(acme: Any, instrumented: KernelInstrumentor) -> None:
    first, second = CollectingSink(), CollectingSink()
    pipeline.add_sink(first)
    pipeline.add_sink(second)
    acme.build("f")
    pipeline.remove_sink(first)
    acme.build("g")

    assert (["acme.f"], ["acme.f", "acme.g"]) == (
        [trip.kernel for trip in first.trips],
        [trip.kernel for trip in second.trips],
    )


@pytest.mark.faults_logged
def test_a_sink_that_fails_costs_neither_the_program_nor_the_other_sinks(
    acme: Any, telemetry: Telemetry, instrumented: KernelInstrumentor, caplog: pytest.LogCaptureFixture
) -> None:
    failing, after = _FailingSink(wants_start=True), CollectingSink(wants_start=True)
    pipeline.add_sink(failing)
    pipeline.add_sink(after)
    kernels = [acme.build(name, lambda: 7) for name in ("f", "g")]

    assert [7, 7] == [kernel.value for kernel in kernels]
    assert [2, 2, 2] == [len(failing.trips), len(after.trips), len(after.starts)]
    assert 2 == len(telemetry.spans)
    assert ["_FailingSink.started", "_FailingSink.finished"] == [
        said.message.partition(" failed")[0] for said in caplog.records
    ]


def test_threads_that_configure_at_once_lose_nothing() -> None:
    sinks = [CollectingSink() for _ in range(200)]
    barrier = threading.Barrier(8)

    def add(part: int) -> None:
        barrier.wait()
        for sink in sinks[part::8]:
            pipeline.add_sink(sink)
            pipeline.configure(inline_limit=part)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=add, args=(part,)) for part in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)

    assert set(map(id, sinks)) == set(map(id, pipeline.current().sinks))
