"""A program with a tracer provider of its own, which samples nothing but its own important spans.

Prints what its exporter has got and what its sampler was asked, its own spans only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler, SamplingResult, TraceIdRatioBased
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes

NOTHING = TraceIdRatioBased(0)


class ImportantOnly(Sampler):
    def __init__(self) -> None:
        self.asked: list[str] = []

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
        if not name.startswith("compile "):
            self.asked.append(name)
        sampler = ALWAYS_ON if name == "important" else NOTHING
        return sampler.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)

    def get_description(self) -> str:
        return "ImportantOnly"


def main() -> None:
    exporter = InMemorySpanExporter()
    sampler = ImportantOnly()
    provider = TracerProvider(sampler=sampler)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    tracer = trace.get_tracer("program")

    from numba import njit

    def kernel(x: int) -> int:
        return x + 1

    with tracer.start_as_current_span("unimportant") as unimportant:
        njit("int64(int64)")(kernel)
    with tracer.start_as_current_span("important", attributes={"own": 1}):
        pass

    finished = [json.loads(span.to_json(indent=None) or "") for span in exporter.get_finished_spans()]
    own = [{name: span[name] for name in ("name", "attributes", "status", "events")} for span in finished]
    print(own, sampler.asked, unimportant.is_recording(), trace.get_tracer_provider() is provider)


main()
