from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from example_trips import a_record
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExportResult
from strategies import trips
from telemetry import CollectingSink

from mapping.carriers import difference, full_trip, span_of, with_ids
from otel_kernel import semconv
from otel_kernel.exporter import REASONS_LOGGED, TripExporter
from otel_kernel.records import Trip
from otel_kernel.spans import Spans
from otel_kernel.texts import TextFiles

ALWAYS = {semconv.PROCESS_PID: 4711, semconv.THREAD_ID: 4712}


class _FullSink(CollectingSink):
    def finished(self, trip: Trip) -> None:
        raise OSError("no space left on device")


@pytest.fixture
def sink() -> CollectingSink:
    return CollectingSink(wants_start=True)


@pytest.fixture
def provider(sink: CollectingSink) -> Iterator[TracerProvider]:
    """A provider whose spans go to `sink`."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(TripExporter(sink)))
    yield provider
    provider.shutdown()


def emit(provider: trace.TracerProvider, trip: Trip) -> None:
    spans = Spans(provider, private=True)
    spans.end(spans.start(trip, None), trip, inline_limit=1000, texts=None, error=None)


@settings(deadline=None, max_examples=50)
@given(st.lists(trips(("record", "failed", "abandoned")), max_size=3))
def test_the_sink_is_handed_the_trips_of_a_batch_in_order(several: Sequence[Trip]) -> None:
    sink = CollectingSink(wants_start=True)
    sent = [with_ids(trip) for trip in several]
    result = TripExporter(sink).export([span_of(trip) for trip in sent])

    assert SpanExportResult.SUCCESS is result
    assert len(sent) == len(sink.trips)
    assert "" == "".join(difference(trip, found) for trip, found in zip(sent, sink.trips, strict=True))
    assert [] == sink.starts


def test_spans_of_others_are_passed_over(provider: TracerProvider, sink: CollectingSink) -> None:
    with provider.get_tracer("flask").start_as_current_span("GET /"):
        emit(provider, a_record(attributes=ALWAYS))

    (found,) = sink.trips
    assert "shop.discount" == found.kernel


def test_texts_are_looked_up_in_their_files(tmp_path: Path) -> None:
    texts, sink = TextFiles(tmp_path), CollectingSink()
    sent = full_trip()
    span = span_of(sent, inline_limit=0, texts=texts)
    TripExporter(sink, texts=texts).export([span])

    assert [sent] == sink.trips


def test_a_reject_is_counted_each_time_and_logged_once_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    sink = CollectingSink()
    exporter = TripExporter(sink)
    cut = span_of(full_trip(), limits=SpanLimits(max_attribute_length=20))
    dropped = span_of(full_trip(), limits=SpanLimits(max_attributes=90))
    caplog.clear()
    results = {exporter.export([cut, dropped, span_of(full_trip()), cut]) for _ in range(3)}

    assert {SpanExportResult.SUCCESS} == results
    assert 9 == exporter.rejected
    assert 3 == len(sink.trips)
    first, second = caplog.records
    assert logging.WARNING == first.levelno
    assert "cut: code.file.path, " in first.message
    assert "lost: compute.kernel." in second.message
    assert all(part in first.message for part in ("1" * 32, "2" * 16))


def test_rejects_of_endless_kinds_are_counted_and_their_log_ends(caplog: pytest.LogCaptureFixture) -> None:
    exporter = TripExporter(CollectingSink())
    kernels = range(REASONS_LOGGED + 10)
    for number in kernels:
        trip = replace(full_trip(), kernel="k" * (100 + number))
        exporter.export([span_of(trip, limits=SpanLimits(max_attribute_length=80))])

    assert len(kernels) == exporter.rejected
    assert REASONS_LOGGED == len([record for record in caplog.records if record.name == "otel_kernel"])


@pytest.mark.faults_logged
def test_a_sink_that_fails_costs_neither_the_program_nor_later_trips(
    caplog: pytest.LogCaptureFixture,
) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(TripExporter(_FullSink())))
    emit(provider, a_record(attributes=ALWAYS))
    emit(provider, a_record(attributes=ALWAYS))
    result = TripExporter(_FullSink()).export([span_of(full_trip())])

    assert SpanExportResult.FAILURE is result
    (said,) = [record for record in caplog.records if record.name == "otel_kernel"]
    assert "_FullSink.finished failed" in said.message


def test_after_shutdown_nothing_is_handed_on(sink: CollectingSink) -> None:
    exporter = TripExporter(sink)

    assert exporter.force_flush()
    exporter.shutdown()
    assert SpanExportResult.FAILURE is exporter.export([span_of(full_trip())])
    assert [] == sink.trips


def test_a_batch_processor_hands_on_what_was_left_at_shutdown(sink: CollectingSink) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(TripExporter(sink)))
    for seq in range(5):
        emit(provider, a_record(seq, attributes=ALWAYS))
    provider.shutdown()

    assert [0, 1, 2, 3, 4] == [trip.seq for trip in sink.trips]


def test_threads_that_export_at_once_lose_no_count() -> None:
    exporter = TripExporter(CollectingSink())
    cut = [span_of(full_trip(), limits=SpanLimits(max_attribute_length=20))] * 50
    threads = [threading.Thread(target=exporter.export, args=(cut,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 400 == exporter.rejected


def test_a_span_made_by_hand_without_anything_is_passed_over(sink: CollectingSink) -> None:
    exporter = TripExporter(sink)

    assert SpanExportResult.SUCCESS is exporter.export([ReadableSpan("bare")])
    assert ([], 0) == (sink.trips, exporter.rejected)
