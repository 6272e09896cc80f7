"""What of a trip arrives at the other end of OTLP, through the SDK's own exporters."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace import TracerProvider

from otel_kernel import __version__, semconv, session
from otel_kernel.instrumentor import KernelInstrumentor
from otel_kernel.mapping import read_span
from otel_kernel.records import KernelCacheKey, TextDigest, Trip, hex128
from otel_kernel.semconv import DURATION_METRIC
from otlp.providers import meter_provider, tracer_provider
from otlp.receiver import Arrived, Protocol, Receiver
from otlp.views import attributes_of, views_of

ANY = object()
"""Stands for a value that differs from run to run; its type does not."""

SHA_IR, SHA_SOURCE = TextDigest.of("ir of f"), TextDigest.of("source of f")
KEY = KernelCacheKey.of_texts(build="acme 1.2; sm_90", rest="f")


@contextmanager
def exporting(
    instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol, **options: Any
) -> Generator[TracerProvider]:
    """Instrument acme; all that was made has arrived at the end of the block."""
    traces, meters = tracer_provider(receiver, protocol), meter_provider(receiver, protocol)
    instrumentor.instrument(tracer_provider=traces, meter_provider=meters, **options)
    yield traces
    traces.shutdown()
    meters.shutdown()


def one(receiver: Receiver, name: str = "compile acme.f") -> Arrived:
    (found,) = [arrived for arrived in receiver.spans if arrived.span.name == name]
    return found


def expected_attributes(level: str) -> dict[str, object]:
    """Return every attribute of a record of `read_all`, by name."""
    attributes: dict[str, object] = {
        "compute.kernel.name": "acme.f",
        "compute.kernel.runtime": "acme",
        "compute.kernel.layer": "acme",
        "compute.kernel.role": "trip",
        "compute.kernel.session.id": session.current().id,
        "compute.kernel.session.run": session.current().run,
        "compute.kernel.session.seq": int,
        "compute.kernel.record.version": 1,
        "compute.kernel.record.size": int,
        "compute.kernel.record.length": int,
        "compute.kernel.key.id": hex128(KEY.id),
        "compute.kernel.key.build_id": hex128(KEY.build_id),
        "compute.kernel.key.component.flags": "-O3",
        "compute.kernel.compilation.outcome": "compiled",
        "compute.kernel.compilation.duration_ns": int,
        "compute.kernel.compilation.outcome_from": "runtime",
        "compute.kernel.compilation.reason": "first call",
        "compute.kernel.stage.lower": 40,
        "compute.kernel.stage.link": 2,
        "compute.kernel.ir.sha256": SHA_IR.sha256,
        "compute.kernel.ir.size": SHA_IR.size,
        "compute.kernel.store.kind": "acme.memory",
        "compute.kernel.store.location": "/tmp/acme",
        "compute.kernel.store.entry": "f.bin",
        "compute.kernel.store.stored": True,
        "compute.kernel.target": "cuda:90",
        "compute.kernel.device": "cuda:0",
        "compute.kernel.device_loaded": True,
        "compute.kernel.artifact.size": 100,
        "compute.kernel.specialization": "(float64,)",
        "compute.kernel.build": "acme 1.2; sm_90",
        "compute.kernel.identity": str,
        "compute.kernel.phase": "serving",
        "compute.kernel.rank": 3,
        "compute.kernel.world_size": 8,
        "code.function.name": "f",
        "code.file.path": "/srv/shop.py",
        "code.line.number": 12,
        "process.pid": os.getpid(),
        "thread.id": threading.get_native_id(),
    }
    if level == "full":
        attributes |= {
            "compute.kernel.ir.text": "ir of f",
            "compute.kernel.ir.location": "inline",
            "compute.kernel.source.text": "source of f",
            "compute.kernel.source.location": "inline",
            "compute.kernel.source.sha256": SHA_SOURCE.sha256,
            "compute.kernel.source.size": SHA_SOURCE.size,
        }
    return attributes


@pytest.mark.parametrize("level", ["basic", "full"])
def test_a_record_arrives_as_a_span_with_exactly_its_attributes(
    acme: Any,
    acme_instrumentor: KernelInstrumentor,
    receiver: Receiver,
    protocol: Protocol,
    level: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    with exporting(acme_instrumentor, receiver, protocol, level=level, serving_after=0):
        acme.Compiler().compile("f", flags="-O3")
    arrived = one(receiver)
    found = attributes_of(arrived.span.attributes)

    assert len(found) == len(arrived.span.attributes), "an attribute came twice"
    for name, expected in expected_attributes(level).items():
        value = found.pop(name)
        if isinstance(expected, type):
            assert expected is type(value), name
        else:
            assert (type(expected), expected) == (type(value), value), name
    assert {} == found


def test_a_record_arrives_with_its_name_kind_scope_status_and_times(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    with exporting(acme_instrumentor, receiver, protocol):
        acme.Compiler().compile("f")
    arrived = one(receiver)
    span = arrived.span
    duration = attributes_of(span.attributes)[semconv.DURATION_NS]

    assert Span.SPAN_KIND_INTERNAL == span.kind
    assert ("otel_kernel.acme", __version__) == (arrived.scope.name, arrived.scope.version)
    assert Status() == span.status
    assert duration == span.end_time_unix_nano - span.start_time_unix_nano
    assert b"" == span.parent_span_id
    assert ([], []) == (list(span.events), list(span.links))
    assert 0 == span.dropped_attributes_count


def test_what_arrives_is_read_back_as_the_trip(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    with exporting(acme_instrumentor, receiver, protocol, level="full"):
        acme.Compiler().compile("f")
    (request,) = [each for each in receiver.requests if each.DESCRIPTOR.name == "ExportTraceServiceRequest"]
    (view,) = views_of(request)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - told by its name
    found = read_span(view)

    assert isinstance(found, Trip)
    assert ("acme.f", KEY, "ir of f", "source of f") == (found.kernel, found.key, found.ir, found.source)
    assert found.record is not None


def test_a_hit_in_memory_sends_nothing(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    with exporting(acme_instrumentor, receiver, protocol):
        compiler = acme.Compiler()
        for _ in range(3):
            compiler.compile("f")

    assert 1 == len(receiver.spans)


def test_an_artifact_out_of_the_store_arrives_as_loaded_and_without_ir(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    with exporting(acme_instrumentor, receiver, protocol, level="full"):
        acme.compiler.store.kept["f"] = acme.compiler.Kernel("f", 1)
        acme.Compiler().compile("f")
    found = attributes_of(one(receiver).span.attributes)

    assert "loaded" == found[semconv.OUTCOME]
    assert [] == [name for name in found if name.startswith("compute.kernel.ir.")]
    assert semconv.STORE_STORED not in found


def test_a_trip_inside_a_trip_is_its_child_and_both_are_the_programs(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    with exporting(acme_instrumentor, receiver, protocol) as provider:
        compiler = acme.Compiler()
        with provider.get_tracer("shop").start_as_current_span("request"):
            compiler.compile("f", lambda: compiler.compile("g"))
        compiler.compile("h")
    request, outer, inner, alone = (
        one(receiver, name).span for name in ("request", "compile acme.f", "compile acme.g", "compile acme.h")
    )
    seqs = [attributes_of(span.attributes)[semconv.SESSION_SEQ] for span in (outer, inner, alone)]

    assert request.span_id == outer.parent_span_id
    assert outer.span_id == inner.parent_span_id
    assert request.trace_id == outer.trace_id == inner.trace_id != alone.trace_id
    assert b"" == alone.parent_span_id
    assert seqs[0] == attributes_of(inner.attributes)[semconv.SESSION_PARENT_SEQ]
    assert semconv.SESSION_PARENT_SEQ not in attributes_of(outer.attributes)
    assert sorted(seqs, key=str) == seqs
    assert outer.start_time_unix_nano <= inner.start_time_unix_nano


def _fails() -> None:
    raise KeyError("no such name")


def test_a_failed_trip_arrives_with_status_error_and_no_outcome(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    with exporting(acme_instrumentor, receiver, protocol), pytest.raises(KeyError):
        acme.Compiler().compile("f", _fails)
    span = one(receiver).span
    found = attributes_of(span.attributes)

    assert Status.STATUS_CODE_ERROR == span.status.code
    assert "KeyError at shop.py:12 A042" == span.status.message
    assert "KeyError" == found["error.type"]
    assert semconv.OUTCOME not in found
    assert [] == list(span.events)


def test_an_error_inside_another_trip_is_abandoned_as_nested_and_no_error(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    def tries() -> None:
        with pytest.raises(KeyError):
            acme.Compiler().compile("g", _fails)

    with exporting(acme_instrumentor, receiver, protocol):
        acme.Compiler().compile("f", tries)
    inner = one(receiver, "compile acme.g").span
    found = attributes_of(inner.attributes)

    assert Status() == inner.status
    assert "nested" == found[semconv.ABANDONED]
    assert not {semconv.OUTCOME, "error.type"} & found.keys()
    assert "compiled" == attributes_of(one(receiver).span.attributes)[semconv.OUTCOME]


def test_the_duration_arrives_as_a_histogram_with_an_exemplar(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    with exporting(acme_instrumentor, receiver, protocol, serving_after=0):
        acme.Compiler().compile("f")
    span = one(receiver).span
    ((scope, metric),) = [each for each in receiver.metrics if each[1].name == DURATION_METRIC]
    (point,) = metric.histogram.data_points
    (exemplar,) = point.exemplars

    assert ("otel_kernel", __version__) == (scope.name, scope.version)
    assert ("compute.kernel.compilation.duration", "s") == (metric.name, metric.unit)
    assert semconv.METRICS[DURATION_METRIC].brief == metric.description
    assert list(semconv.DURATION_BUCKETS) == list(point.explicit_bounds)
    assert {
        "compute.kernel.runtime": "acme",
        "compute.kernel.layer": "acme",
        "compute.kernel.compilation.outcome": "compiled",
        "compute.kernel.phase": "serving",
        "compute.kernel.store.stored": True,
    } == attributes_of(point.attributes)
    assert 1 == point.count
    assert span.end_time_unix_nano - span.start_time_unix_nano == round(point.sum * 1e9)
    assert (span.trace_id, span.span_id) == (exemplar.trace_id, exemplar.span_id)
    assert [] == list(exemplar.filtered_attributes)


def test_failed_trips_are_measured_by_their_error_and_abandoned_ones_not_at_all(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    def tries() -> None:
        with pytest.raises(KeyError):
            acme.Compiler().compile("nested", _fails)

    with exporting(acme_instrumentor, receiver, protocol):
        acme.Compiler().compile("f", tries)
        with pytest.raises(KeyError):
            acme.Compiler().compile("g", _fails)
    ((_, metric),) = [each for each in receiver.metrics if each[1].name == DURATION_METRIC]
    found = [attributes_of(point.attributes) for point in metric.histogram.data_points]
    ours = {"compute.kernel.runtime": "acme", "compute.kernel.layer": "acme"}

    assert [1, 1] == [point.count for point in metric.histogram.data_points]
    assert ours | {"error.type": "KeyError"} in found
    assert ours | {semconv.OUTCOME: "compiled", semconv.STORE_STORED: True} in found


def test_the_age_of_the_oldest_trip_in_flight_arrives_as_a_gauge(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    meters = meter_provider(receiver, protocol)
    acme_instrumentor.instrument(meter_provider=meters)
    acme.Compiler().compile("f", meters.force_flush)
    meters.shutdown()
    gauges = [metric for _, metric in receiver.metrics if metric.name == semconv.OLDEST_ACTIVE_METRIC]
    during, after = (metric.gauge.data_points[0] for metric in gauges)

    assert {"s"} == {metric.unit for metric in gauges}
    assert 0 < during.as_double
    assert 0 == after.as_double
    assert [] == list(during.attributes)


def test_a_receiver_that_is_away_for_a_while_gets_the_trips_later(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    receiver.refusals = 1
    provider = tracer_provider(receiver, protocol)
    acme_instrumentor.instrument(tracer_provider=provider)
    acme.Compiler().compile("f")
    provider.force_flush()
    provider.shutdown()

    assert 1 == receiver.refused
    assert ["compile acme.f"] == [arrived.span.name for arrived in receiver.spans]
