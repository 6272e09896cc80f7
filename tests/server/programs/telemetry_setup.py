"""The server's own OpenTelemetry: a provider in each process, with a sampler of the server's."""

from __future__ import annotations

import os
from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes


class AllButUnsampled(Sampler):
    """Samples every root but the requests for `/unsampled`."""

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        sampler = ALWAYS_OFF if "/unsampled" in name else ALWAYS_ON
        return sampler.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)

    def get_description(self) -> str:
        return "AllButUnsampled"


def set_up(service: str) -> None:
    """Set up this process, in the ways in which the program has to do so; a spawned one starts from nothing."""
    way = os.environ["WAY"]
    if way == "opentelemetry-instrument":
        return
    provider = TracerProvider(
        resource=Resource.create({"service.name": service}), sampler=ParentBased(AllButUnsampled())
    )
    endpoint = f"{os.environ['OTEL_EXPORTER_OTLP_ENDPOINT']}/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    trace.set_tracer_provider(provider)
    if way == "code":
        import otel_kernel

        otel_kernel.instrument()


def flush() -> None:
    """Send what is left, as a forked child has to, which ends without it."""
    provider = trace.get_tracer_provider()
    if isinstance(provider, TracerProvider):
        provider.force_flush()
