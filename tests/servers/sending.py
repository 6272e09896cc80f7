"""Spans of the tests, sent as an SDK sends them."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from servers.collector import Collector


def grpc_exporter(collector: Collector) -> SpanExporter:
    """Return an exporter to a Collector that wants neither TLS nor a token."""
    return OTLPSpanExporter(endpoint=f"127.0.0.1:{collector.grpc_port}", insecure=True, timeout=10)


def send(exporter: SpanExporter, spans: Iterable[ReadableSpan]) -> None:
    """Send spans in one request, which must be taken, and end the exporter."""
    assert exporter.export(list(spans)) is SpanExportResult.SUCCESS
    exporter.shutdown()
