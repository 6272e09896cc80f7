"""A tracer provider of our own that exports every trip to one OTLP endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from opentelemetry.trace import TracerProvider

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

GRPC_PORT = 4317
"""The port that means gRPC where a URL says `http`, as everywhere in OpenTelemetry."""


def check_endpoint(url: str) -> tuple[str, str]:
    """Return (protocol, endpoint) of an endpoint's URL; the protocol is `grpc` or `http/protobuf`.

    `grpc://host:port` and any URL with port 4317 mean gRPC; other `http://` and `https://` URLs mean HTTP,
    with `/v1/traces` added where the URL has no path.

    Raises:
        ValueError: the URL has no such scheme or no host.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"OTLP endpoint {url!r}: {error}") from None
    if parts.scheme not in ("http", "https", "grpc") or not parts.hostname:
        raise ValueError(f"OTLP endpoint {url!r} must be like http://127.0.0.1:4318 or grpc://127.0.0.1:4317")
    if parts.scheme == "grpc":
        return "grpc", f"http://{parts.netloc}"
    if port == GRPC_PORT:
        return "grpc", f"{parts.scheme}://{parts.netloc}"
    return "http/protobuf", url if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}/v1/traces"


def exporter_to(url: str) -> SpanExporter:
    """Return an exporter to an endpoint's URL, in requests that receivers take.

    Raises:
        ValueError: the URL is no OTLP endpoint.
        ImportError: the SDK or the exporter is not installed.
    """
    from otel_kernel.splitting import SplittingExporter

    return SplittingExporter(_exporter_to(url))


def _exporter_to(url: str) -> SpanExporter:
    protocol, endpoint = check_endpoint(url)
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter

        return GrpcExporter(endpoint=endpoint)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter

    return HttpExporter(endpoint=endpoint)


def private_provider(url: str) -> TracerProvider:
    """Return a provider that samples everything, cuts nothing and belongs to otel-kernel alone.

    Raises:
        ValueError: the URL is no OTLP endpoint.
        ImportError: the SDK or the exporter is not installed.
    """
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanLimits
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    from otel_kernel.delivery import CountedProcessor

    processor = CountedProcessor(_exporter_to(url), url)
    unlimited = SpanLimits.UNSET  # the limits in the environment are meant for the program's own spans
    limits = SpanLimits(
        max_attributes=unlimited,
        max_span_attributes=unlimited,
        max_attribute_length=unlimited,
        max_span_attribute_length=unlimited,
    )
    provider = SdkTracerProvider(sampler=ALWAYS_ON, resource=Resource.create(), span_limits=limits)
    provider.add_span_processor(processor)
    return provider
