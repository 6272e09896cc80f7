"""Every trip goes down every road and comes out as it went in; what is lost where it may be is counted."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from example_trips import a_record, other_session
from mapping.carriers import span_of
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from otlp.receiver import Protocol, Receiver
from receiving.command import receiving
from servers.collector import Collector
from servers.program import PROGRAM, fields, run

from every_road.road import Roads, roads
from otel_kernel import semconv
from otel_kernel.delivery import CountedProcessor
from otel_kernel.otlp import private_provider
from otel_kernel.records import Session, Trip
from otel_kernel.splitting import SplittingExporter

pytestmark = [pytest.mark.usefixtures("servers"), pytest.mark.slow]

ALWAYS = {semconv.PROCESS_PID: 4711, semconv.THREAD_ID: 4712, semconv.DEVICE_LOADED: True}
TRITON = Path(__file__).parent / "programs" / "triton_trips.py"
TESTS = Path(__file__).parents[1]
SIX_MEBIBYTES = 6 * 1024 * 1024
BURST = 10_000
PROTOCOLS: tuple[Protocol, ...] = ("grpc", "http/protobuf")


@pytest.fixture
def all_roads(tmp_path: Path) -> Generator[Roads]:
    """The Collector and all that it sends to."""
    with roads(tmp_path) as started:
        yield started


def endpoint(collector: Collector, protocol: Protocol) -> str:
    return collector.grpc if protocol == "grpc" else collector.http


def exporter(collector: Collector, protocol: Protocol) -> SpanExporter:
    if protocol == "grpc":
        return SplittingExporter(
            GrpcExporter(endpoint=f"127.0.0.1:{collector.grpc_port}", insecure=True, timeout=60)
        )
    return SplittingExporter(HttpExporter(endpoint=f"{collector.http}/v1/traces", timeout=60))


def some_trips(number: int, session: Session, text: str = "") -> list[Trip]:
    now = time.time_ns()
    trips = (
        a_record(seq, session=session, started_ns=now + seq, ir=text or None, attributes=ALWAYS)
        for seq in range(number)
    )
    # Each in a trace of its own, a hundred a trace would do as well.
    return [
        replace(trip, trace_id=f"{int(session.id, 16) * 10**9 + trip.seq + 1:032x}", span_id="1" * 16)
        for trip in trips
    ]


def send(sender: SpanExporter, trips: Iterable[Trip], inline_limit: int = 2**31) -> None:
    assert (
        sender.export([span_of(trip, inline_limit=inline_limit) for trip in trips])
        is SpanExportResult.SUCCESS
    )


def test_real_trips_of_numba_and_triton_come_out_of_every_road(all_roads: Roads, tmp_path: Path) -> None:
    sent: list[Trip] = []
    for protocol in PROTOCOLS:
        for level in ("basic", "full"):
            for program in (PROGRAM, TRITON):
                folder = tmp_path / f"{protocol[:4]}-{level}-{program.stem}"
                folder.mkdir()
                variables = {
                    "PYTHONPATH": str(TESTS),
                    "TRITON_CACHE_DIR": str(folder / "triton"),
                    "TRITON_DEFAULT_FP_FUSION": "1",
                    "OTEL_KERNEL_INLINE_LIMIT": "100000000",
                }
                url = endpoint(all_roads.collector, protocol)
                sent += run(folder, url, program=program, level=level, variables=variables)
    all_roads.wait_for(len(sent))
    expected = fields(sent)

    assert {"numba", "triton"} == {trip.runtime for trip in sent}
    assert any(isinstance(trip.ir, str) and isinstance(trip.source, str) for trip in sent)
    for name, come_out in all_roads.ends().items():
        assert expected == fields(come_out()), name


def test_a_text_of_six_mebibytes_comes_out_of_every_road(all_roads: Roads) -> None:
    sent: list[Trip] = []
    for number, protocol in enumerate(PROTOCOLS):
        big = some_trips(2, other_session(number + 1), "label \u2028 0:\n" * (SIX_MEBIBYTES // 14 + 1))
        small = [replace(trip, ir="small", seq=trip.seq + 2) for trip in big]
        small = [replace(trip, trace_id=f"{int(trip.trace_id or '', 16) + 99:032x}") for trip in small]
        sender = exporter(all_roads.collector, protocol)
        send(sender, [*small, *big])
        sender.shutdown()
        sent += [*big, *small]
    all_roads.wait_for(len(sent))

    for name, come_out in all_roads.ends().items():
        assert sent == come_out(), name


def test_a_burst_comes_out_of_every_road(all_roads: Roads) -> None:
    sent = some_trips(BURST, other_session(3))
    batches = BatchSpanProcessor(exporter(all_roads.collector, "grpc"), max_queue_size=2 * BURST)
    processor: SpanProcessor = batches
    for trip in sent:
        processor.on_end(span_of(trip))
    processor.shutdown()
    all_roads.wait_for(BURST)

    for name, come_out in all_roads.ends().items():
        assert sent == come_out(), name


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_a_collector_that_is_killed_in_the_middle_and_starts_again_loses_nothing(
    all_roads: Roads, protocol: Protocol
) -> None:
    sent = some_trips(1000, other_session(4), "label 0:\n" * 500)
    sender = exporter(all_roads.collector, protocol)
    halfway = threading.Event()

    def send_all() -> None:
        for start in range(0, len(sent), 20):
            send(sender, sent[start : start + 20])
            if start >= 400:
                halfway.set()

    thread = threading.Thread(target=send_all)
    thread.start()
    halfway.wait(60)
    all_roads.collector.kill()
    all_roads.collector.start()
    thread.join()
    sender.shutdown()
    all_roads.wait_for(len(sent))

    for name, come_out in all_roads.ends().items():
        assert sent == come_out(), name


def test_a_receiver_that_is_away_for_a_while_gets_what_has_waited(all_roads: Roads) -> None:
    sent = some_trips(300, other_session(5))
    sender = exporter(all_roads.collector, "grpc")
    send(sender, sent[:100])
    all_roads.receiving.process.send_signal(signal.SIGKILL)
    all_roads.receiving.process.wait()
    send(sender, sent[100:200])
    all_roads.collector.kill()  # what waits on disk is sent by its successor
    all_roads.collector.start()
    with receiving(all_roads.receiving.recording, port=all_roads.receiving.port):
        send(sender, sent[200:])
        sender.shutdown()
        all_roads.wait_for(len(sent))

    assert sent == all_roads.recording()


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_what_the_queue_of_the_sdk_drops_is_counted_and_said_in_one_line(
    protocol: Protocol, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "600")
    with Receiver() as receiver:
        provider = private_provider(receiver.endpoint(protocol))
        (processor,) = provider._active_span_processor._span_processors  # type: ignore[attr-defined]
        assert isinstance(processor, CountedProcessor)
        spans = [span_of(trip) for trip in some_trips(BURST, other_session(6))]
        for span in spans:
            processor.on_end(span)
        processor.shutdown()
        arrived = len(receiver.trips)
    (said,) = [record.message for record in caplog.records if "did not reach" in record.message]

    assert 0 < arrived < BURST
    assert BURST - arrived == processor.dropped
    assert 0 == processor.refused
    assert f"{BURST - arrived} of {BURST} spans did not reach {receiver.endpoint(protocol)}: " in said
    assert f"{BURST - arrived} found the queue full, 0 were not taken" in said


def test_what_an_endpoint_does_not_take_is_counted_and_said(caplog: pytest.LogCaptureFixture) -> None:
    with Receiver(max_bytes=10) as receiver:
        processor = CountedProcessor(
            HttpExporter(endpoint=f"http://127.0.0.1:{receiver.http_port}/v1/traces"), "there"
        )
        for trip in some_trips(5, other_session(7)):
            processor.on_end(span_of(trip))
        processor.shutdown()
    (said,) = [record.message for record in caplog.records if "did not reach" in record.message]

    assert (0, 5) == (processor.dropped, processor.refused)
    assert "5 of 5 spans did not reach there: 0 found the queue full, 5 were not taken" in said


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_an_endpoint_that_refuses_for_a_while_gets_everything_and_nothing_is_said(
    protocol: Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    with Receiver(refusals=2) as receiver:
        provider = private_provider(receiver.endpoint(protocol))
        (processor,) = provider._active_span_processor._span_processors  # type: ignore[attr-defined]
        assert isinstance(processor, CountedProcessor)
        for trip in some_trips(50, other_session(8)):
            processor.on_end(span_of(trip))
        processor.shutdown()

    assert (2, 50) == (receiver.refused, len(receiver.trips))
    assert (0, 0) == (processor.dropped, processor.refused)
    assert [] == [record.message for record in caplog.records if "did not reach" in record.message]
