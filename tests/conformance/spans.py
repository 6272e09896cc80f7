"""An SDK that reports spans and measurements; scripts that do without one never import this module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Sampler

from conformance.harness import say


def as_json(span: ReadableSpan) -> dict[str, Any]:
    """Return everything that leaves the process with a span."""
    context, parent, scope = span.get_span_context(), span.parent, span.instrumentation_scope
    assert context is not None
    return {
        "name": span.name,
        "kind": span.kind.name,
        "scope": scope.name if scope is not None else None,
        "scope_version": scope.version if scope is not None else None,
        "trace_id": f"{context.trace_id:032x}",
        "span_id": f"{context.span_id:016x}",
        "parent_id": f"{parent.span_id:016x}" if parent is not None else None,
        "start_ns": span.start_time,
        "end_ns": span.end_time,
        "status": span.status.status_code.name,
        "description": span.status.description,
        "attributes": dict(span.attributes or {}),
        "events": [{"name": event.name, "attributes": dict(event.attributes or {})} for event in span.events],
        "links": [f"{link.context.span_id:016x}" for link in span.links],
    }


class Lines(SpanExporter):
    """Reports every span that it exports."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        for span in spans:
            say("span", as_json(span))
        return SpanExportResult.SUCCESS


def tracer_provider(
    *exporters: SpanExporter, processors: Sequence[SpanProcessor] = (), sampler: Sampler | None = None
) -> TracerProvider:
    """Return a provider that reports its spans at once and hands them to `exporters` too.

    Args:
        *exporters: take the spans first.
        processors: stand before the exporters.
        sampler: decides about spans; all by default.
    """
    provider = TracerProvider(sampler=sampler)
    for processor in processors:
        provider.add_span_processor(processor)
    for exporter in (*exporters, Lines()):
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


class Metrics:
    """A meter provider whose measurements are reported on demand."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider(metric_readers=[self._reader])

    def report(self) -> None:
        """Report one line for every data point."""
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        say(
                            "metric",
                            {
                                "name": metric.name,
                                "unit": metric.unit,
                                "attributes": dict(point.attributes or {}),
                                "count": getattr(point, "count", None),
                                "sum": getattr(point, "sum", None),
                                "value": getattr(point, "value", None),
                            },
                        )
