from __future__ import annotations

from collections.abc import Sequence

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult

from otel_kernel.splitting import SplittingExporter
from otlp.providers import span_exporter
from otlp.receiver import Protocol, Receiver

PROVIDER = TracerProvider(shutdown_on_exit=False)


def spans_of(*sizes: int) -> list[ReadableSpan]:
    """Return finished spans, named by their position, with a text of so many bytes each."""
    spans: list[ReadableSpan] = []
    for number, size in enumerate(sizes):
        span = PROVIDER.get_tracer("test").start_span(
            f"span {number}", attributes={"text": "\U0001f9ff" * (size // 4)}
        )
        span.end()
        assert isinstance(span, ReadableSpan)
        spans.append(span)
    return spans


def arrived(receiver: Receiver) -> Sequence[str]:
    return [each.span.name for each in receiver.spans]


def test_a_batch_within_the_limit_is_one_request(receiver: Receiver, protocol: Protocol) -> None:
    exporter = SplittingExporter(span_exporter(receiver, protocol))
    result = exporter.export(spans_of(*[1000] * 50))

    assert SpanExportResult.SUCCESS is result
    assert 1 == len(receiver.requests)
    assert [f"span {number}" for number in range(50)] == arrived(receiver)


def test_a_larger_batch_arrives_whole_in_order_and_in_requests_within_the_limit(
    receiver: Receiver, protocol: Protocol
) -> None:
    exporter = SplittingExporter(span_exporter(receiver, protocol))
    result = exporter.export(spans_of(*[100_000] * 80))

    assert SpanExportResult.SUCCESS is result
    assert [f"span {number}" for number in range(80)] == arrived(receiver)
    assert 3 == len(receiver.requests)
    assert 3_500_000 >= max(request.ByteSize() for request in receiver.requests)


def test_a_span_that_is_too_large_fails_alone(receiver: Receiver, protocol: Protocol) -> None:
    exporter = SplittingExporter(span_exporter(receiver, protocol))
    result = exporter.export(spans_of(*[100] * 10, 5_000_000, *[100] * 10))

    assert SpanExportResult.FAILURE is result
    assert [f"span {number}" for number in range(21) if number != 10] == arrived(receiver)


@pytest.mark.parametrize("spare", [0, 1])
def test_a_batch_of_just_the_limit_is_not_split(receiver: Receiver, protocol: Protocol, spare: int) -> None:
    spans = spans_of(100, 100)
    limit = sum(encode_spans([span]).ByteSize() for span in spans)
    SplittingExporter(span_exporter(receiver, protocol), limit - spare).export(spans)

    assert 1 + spare == len(receiver.requests)


def test_no_spans_are_no_request(receiver: Receiver, protocol: Protocol) -> None:
    exporter = SplittingExporter(span_exporter(receiver, protocol))

    assert SpanExportResult.SUCCESS is exporter.export([])
    assert [] == receiver.requests


def test_flush_and_shutdown_reach_the_exporter(receiver: Receiver, protocol: Protocol) -> None:
    exporter = SplittingExporter(span_exporter(receiver, protocol))

    assert exporter.force_flush()
    exporter.shutdown()
    assert SpanExportResult.FAILURE is exporter.export(spans_of(1))
    assert [] == receiver.requests
