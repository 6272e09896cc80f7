"""The production configuration: what goes where, what is left out on the way, and who is let in."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from example_trips import a_record
from mapping.carriers import span_of
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from otlp.views import attributes_of

from otel_kernel import semconv
from otel_kernel.inputs import open_input
from otel_kernel.records import CompilationOutcome, Trip
from servers.collector import validate
from servers.production import PRODUCTION, Stack, production
from servers.program import fields, run
from servers.sending import send
from servers.waiting import eventually

pytestmark = pytest.mark.usefixtures("servers")

ALWAYS = {semconv.PROCESS_PID: 4711, semconv.THREAD_ID: 4712, semconv.DEVICE_LOADED: True}
SHORT_NS, LONG_NS = 99_999_999, 100_000_000
LOADED = 3000


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, servers: None) -> Generator[Stack]:
    """The Collector and what is around it."""
    with production(tmp_path_factory.mktemp("production")) as started:
        yield started


def exporter(stack: Stack, token: str | None = None) -> SpanExporter:
    return OTLPSpanExporter(
        endpoint=f"https://localhost:{stack.collector.grpc_port}",
        credentials=grpc.ssl_channel_credentials(stack.certificate.read_bytes()),
        headers=(("authorization", f"Bearer {stack.token if token is None else token}"),),
        timeout=10,
    )


def at_tempo(stack: Stack, prefix: str) -> dict[str, dict[str, object]]:
    """Return the attributes of what has arrived, by name, of the spans whose names start so."""
    found = {arrived.span.name: attributes_of(arrived.span.attributes) for arrived in stack.tempo.spans}
    return {name: attributes for name, attributes in found.items() if name.startswith(prefix)}


def at_jaeger(stack: Stack, service: str, number: int) -> list[Trip]:
    """Return the compiled trips of a service that Jaeger gives back, once there are so many."""

    def look() -> list[Trip]:
        now = time.time_ns()
        times = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now / 1e9 + shift)) for shift in (-3600, 60)]
        question = (
            f"query.service_name={service}&query.start_time_min={times[0]}&query.start_time_max={times[1]}"
        )
        try:
            with urllib.request.urlopen(f"{stack.jaeger.api}/api/v3/traces?{question}") as answer:
                found = json.load(answer)["result"]
        except urllib.error.HTTPError as error:
            error.close()
            return []  # none yet
        (stack.data / "jaeger.jsonl").write_text(json.dumps(found) + "\n")
        trips = [each for each in open_input(stack.data / "jaeger.jsonl") if isinstance(each, Trip)]
        return [trip for trip in trips if trip.outcome is CompilationOutcome.COMPILED]

    eventually(lambda: number <= len(look()))
    return look()


def test_it_is_valid_with_what_must_be_set_alone(tmp_path: Path) -> None:
    must = {"OTELCOL_CERT": "/tls/cert.pem", "OTELCOL_KEY": "/tls/key.pem", "OTELCOL_TOKEN": "secret"}

    assert "" == validate(PRODUCTION, {**must, "OTELCOL_DATA": str(tmp_path)})


def test_the_files_hold_every_trip_whole_and_jaeger_and_tempo_those_that_matter_without_texts(
    stack: Stack, tmp_path: Path
) -> None:
    cold = run(tmp_path, stack.https, variables={**stack.client, "OTEL_SERVICE_NAME": "pricing"})
    warm = run(tmp_path, stack.https, variables={**stack.client, "OTEL_SERVICE_NAME": "pricing"})
    compiled = [trip for trip in (*cold, *warm) if trip.outcome is CompilationOutcome.COMPILED]
    names = {f"compile {trip.kernel}" for trip in compiled}
    eventually(lambda: names <= at_tempo(stack, "compile ").keys())
    shown = at_jaeger(stack, "pricing", len(compiled))
    kept = {
        (trip.session.id, trip.seq): trip
        for trip in open_input(f"{stack.data}/trips/*.jsonl")
        if isinstance(trip, Trip)
    }

    assert fields([*cold, *warm]) == fields(kept[trip.session.id, trip.seq] for trip in (*cold, *warm))
    assert names <= at_tempo(stack, "compile ").keys()
    for attributes in at_tempo(stack, "compile ").values():
        assert not {semconv.IR_TEXT, semconv.SOURCE_TEXT} & attributes.keys()
    digests = {(trip.session.id, trip.seq): trip for trip in compiled}
    assert len(shown) == len(compiled)
    for trip in shown:
        sent = digests[trip.session.id, trip.seq]
        assert not isinstance(trip.ir, str)
        assert not isinstance(trip.source, str)
        assert fields([replace(sent, ir=trip.ir, source=trip.source)]) == fields([trip])
        assert (trip.ir is None) == (sent.ir is None)


def short_loaded(number: int, kernel: str, duration_ns: int) -> ReadableSpan:
    record = a_record(number, attributes=ALWAYS)
    loaded = replace(
        record, outcome=CompilationOutcome.LOADED, duration_ns=duration_ns, kernel=f"{kernel}{number}"
    )
    # Ids as a random generator draws them, and the same in every run of this test.
    return span_of(
        replace(
            loaded,
            trace_id=f"{(number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128:032x}",
            span_id="1" * 16,
        )
    )


def test_of_short_loaded_trips_one_in_a_hundred_is_shown_by_its_trace_and_all_are_kept(stack: Stack) -> None:
    send(exporter(stack), [short_loaded(number, "first", SHORT_NS) for number in range(LOADED)])
    send(exporter(stack), [short_loaded(number, "again", SHORT_NS) for number in range(LOADED)])
    send(exporter(stack), [short_loaded(number, "long", LONG_NS) for number in range(20)])
    eventually(lambda: 20 == len(at_tempo(stack, "compile long")))
    first, again = (
        {name.removeprefix(f"compile {kernel}") for name in at_tempo(stack, f"compile {kernel}")}
        for kernel in ("first", "again")
    )
    lines = "".join(path.read_text() for path in (stack.data / "trips").glob("*.jsonl"))

    assert 20 == len(at_tempo(stack, "compile long"))
    assert LOADED * 0.003 < len(first) < LOADED * 0.02
    assert first == again
    assert 2 * LOADED == lines.count('"compile first') + lines.count('"compile again')


def test_what_is_not_ours_arrives_as_it_was_sent(stack: Stack) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    tracer = provider.get_tracer("shop", "1.2", attributes={"tier": "gold"})
    with tracer.start_as_current_span("order", attributes={"compute.kernel.ir.text": "theirs"}) as span:
        span.add_event("paid", {"amount": 1.5, "parts": ["a", "b"]})
        with tracer.start_as_current_span("loaded", attributes={"outcome": "loaded"}, links=[]) as inner:
            inner.record_exception(ValueError("no"))
    spans = [each for each in (span, inner) if isinstance(each, ReadableSpan)]
    send(exporter(stack), spans)
    eventually(lambda: {"order", "loaded"} <= at_tempo(stack, "").keys())
    sent = {each.name: each.SerializeToString() for each in _spans(encode_spans(spans))}
    arrived = {
        each.span.name: each.span.SerializeToString()
        for each in stack.tempo.spans
        if each.scope.name == "shop"
    }

    assert sent == arrived


def _spans(request: ExportTraceServiceRequest) -> list[Span]:
    return [
        span
        for resource_spans in request.resource_spans
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
    ]


def test_metrics_go_on_to_prometheus(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)  # they make `requests` overlook the certificate
    sender = OTLPMetricExporter(
        endpoint=f"{stack.https}/v1/metrics",
        certificate_file=str(stack.certificate),
        headers={"authorization": f"Bearer {stack.token}"},
    )
    reader = PeriodicExportingMetricReader(sender, export_interval_millis=3_600_000)
    provider = MeterProvider([reader], shutdown_on_exit=False)
    provider.get_meter("otel_kernel.numba").create_histogram(semconv.DURATION_METRIC, unit="s").record(1.5)
    provider.shutdown()
    eventually(lambda: stack.prometheus.requests)
    headers, body = stack.prometheus.requests[0]

    assert "snappy" == headers["Content-Encoding"]
    assert b"compute_kernel_" in body  # what compression leaves of the name in any case


@pytest.mark.parametrize("token", [None, "wrong"])
def test_without_the_token_nothing_is_taken(stack: Stack, token: str | None) -> None:
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(f"{stack.https}/v1/traces", b"{}", headers)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, context=ssl.create_default_context(cafile=stack.certificate))
    refused.value.close()
    sender = exporter(stack, token or "")

    assert 401 == refused.value.code
    assert SpanExportResult.FAILURE is sender.export([short_loaded(0, "never", LONG_NS)])
    sender.shutdown()


def test_without_tls_nothing_is_taken(stack: Stack) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{stack.collector.http_port}/v1/traces", b"{}")
    refused.value.close()

    assert 400 == refused.value.code


def test_what_clickhouse_does_not_take_waits_on_disk(stack: Stack) -> None:
    send(exporter(stack), [short_loaded(1, "waiting", LONG_NS)])
    queues = [path for path in (stack.data / "queues").iterdir() if "clickhouse" in path.name]

    assert queues
    assert any(b"compile waiting1" in path.read_bytes() for path in queues)


def test_its_log_complains_of_nothing_but_clickhouse_which_is_away_and_those_it_lets_not_in(
    stack: Stack,
) -> None:
    expected = ("clickhouse", "TLS handshake error")
    lines = [line for line in stack.collector.complaints() if not any(sign in line for sign in expected)]

    assert [] == lines
