"""The SDK's own exporters, set up as a program would."""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetrics
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from otlp.receiver import Protocol, Receiver


def span_exporter(receiver: Receiver, protocol: Protocol) -> SpanExporter:
    """Return an exporter that sends to `receiver`."""
    if protocol == "grpc":
        return GrpcSpans(endpoint=f"127.0.0.1:{receiver.grpc_port}", insecure=True, timeout=5)
    return HttpSpans(endpoint=f"http://127.0.0.1:{receiver.http_port}/v1/traces")


def tracer_provider(receiver: Receiver, protocol: Protocol) -> TracerProvider:
    """Return a provider whose spans go to `receiver`."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(span_exporter(receiver, protocol)))
    return provider


def meter_provider(receiver: Receiver, protocol: Protocol) -> MeterProvider:
    """Return a provider whose measurements go to `receiver` when it is flushed."""
    if protocol == "grpc":
        exporter: GrpcMetrics | HttpMetrics = GrpcMetrics(
            endpoint=f"127.0.0.1:{receiver.grpc_port}", insecure=True
        )
    else:
        exporter = HttpMetrics(endpoint=f"http://127.0.0.1:{receiver.http_port}/v1/metrics")
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
    return MeterProvider([reader], shutdown_on_exit=False)
