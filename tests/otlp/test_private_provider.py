"""`otlp`: every trip through a provider of ours, and the program's own spans as they were without us."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from otel_kernel import pipeline, semconv
from otel_kernel.instrumentor import KernelInstrumentor
from otel_kernel.otlp import private_provider
from otel_kernel.spans import Spans
from otlp.receiver import Protocol, Receiver
from otlp.views import attributes_of


class Program:
    """A program with a provider of its own: compiles `f`, which compiles `g`, inside a span of its own."""

    def __init__(self, acme: Any, sampled: float) -> None:
        self._acme = acme
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(sampled)), shutdown_on_exit=False
        )
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._tracer = self.provider.get_tracer("shop")
        self.seen: list[trace.Span] = []
        """The span that was current: in the request, in the body of `f`, in that of `g`, after them."""

    def run(self) -> None:
        """Serve one request."""
        compiler = self._acme.Compiler()

        def body_of_f() -> None:
            self.seen.append(trace.get_current_span())
            with self._tracer.start_as_current_span("inside f", attributes={"shop.step": 1}):
                compiler.compile("g", lambda: self.seen.append(trace.get_current_span()))

        with self._tracer.start_as_current_span("request", attributes={"shop.id": "a"}) as span:
            self.seen.append(trace.get_current_span())
            compiler.compile("f", body_of_f)
            self.seen.append(trace.get_current_span())
            span.add_event("served")

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """What the program's exporter was given."""
        return self._exporter.get_finished_spans()

    def own_spans(self) -> list[tuple[object, ...]]:
        """Return what can be compared of the program's own spans."""
        names = {span.context.span_id: span.name for span in self.spans if span.context}
        return [
            (
                span.name,
                span.kind,
                span.instrumentation_scope,
                dict(span.attributes or {}),
                [event.name for event in span.events],
                list(span.links),
                span.status,
                _first_of_others(span, self.spans, names),
            )
            for span in self.spans
            if not span.name.startswith("compile ")
        ]


def _first_of_others(span: ReadableSpan, spans: Sequence[ReadableSpan], names: dict[int, str]) -> str | None:
    """Return the name of the nearest span around this one that is the program's own."""
    parents = {each.context.span_id: each.parent for each in spans if each.context}
    parent = span.parent
    while parent is not None and names.get(parent.span_id, "").startswith("compile "):
        parent = parents[parent.span_id]
    return names.get(parent.span_id) if parent is not None else None


def run(
    acme: Any,
    instrumentor: KernelInstrumentor,
    receiver: Receiver,
    protocol: Protocol,
    sampled: float,
    **options: Any,
) -> Program:
    """Run the program with its own provider and ours; all trips have arrived afterwards."""
    program = Program(acme, sampled)
    instrumentor.instrument(tracer_provider=program.provider, otlp=receiver.endpoint(protocol), **options)
    program.run()
    instrumentor.uninstrument()
    private = pipeline.current().spans[1].tracer_provider
    assert isinstance(private, TracerProvider)
    private.shutdown()
    return program


@pytest.mark.parametrize("sampled", [0.0, 1.0])
def test_every_trip_arrives_and_the_programs_spans_are_as_without_us(
    acme: Any,
    acme_instrumentor: KernelInstrumentor,
    receiver: Receiver,
    protocol: Protocol,
    sampled: float,
) -> None:
    bare = Program(acme, sampled)
    bare.run()
    program = run(acme, acme_instrumentor, receiver, protocol, sampled)

    assert ["compile acme.g", "compile acme.f"] == [arrived.span.name for arrived in receiver.trips]
    assert receiver.trips == receiver.spans
    assert bare.own_spans() == program.own_spans()
    assert (2 if sampled else 0) == len(program.own_spans())


@pytest.mark.parametrize("sampled", [0.0, 1.0])
def test_the_current_span_is_always_of_the_programs_provider(
    acme: Any,
    acme_instrumentor: KernelInstrumentor,
    receiver: Receiver,
    protocol: Protocol,
    sampled: float,
) -> None:
    program = run(acme, acme_instrumentor, receiver, protocol, sampled)
    request, in_f, in_g, after = (span.get_span_context() for span in program.seen)
    ours = {arrived.span.span_id for arrived in receiver.trips}

    assert request == after
    assert {request.trace_id} == {in_f.trace_id, in_g.trace_id}
    assert {bool(sampled)} == {context.trace_flags.sampled for context in (request, in_f, in_g)}
    assert not ours & {context.span_id.to_bytes(8, "big") for context in (request, in_f, in_g)}
    if sampled:
        names = {span.context.span_id: span.name for span in program.spans if span.context}
        assert ["compile acme.f", "compile acme.g"] == [names[in_f.span_id], names[in_g.span_id]]


def test_trips_of_the_private_provider_are_each_others_parents_in_the_programs_trace(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    program = run(acme, acme_instrumentor, receiver, protocol, 0.0)
    inner, outer = (arrived.span for arrived in receiver.trips)
    request = program.seen[0].get_span_context()

    assert outer.span_id == inner.parent_span_id
    assert request.span_id.to_bytes(8, "big") == outer.parent_span_id
    assert {request.trace_id.to_bytes(16, "big")} == {inner.trace_id, outer.trace_id}
    assert Span.SPAN_KIND_INTERNAL == inner.kind == outer.kind


def test_both_providers_are_given_the_same_attributes(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    program = run(acme, acme_instrumentor, receiver, protocol, 1.0, level="full")
    theirs = {span.name: dict(span.attributes or {}) for span in program.spans}

    for arrived in receiver.trips:
        assert theirs[arrived.span.name] == attributes_of(arrived.span.attributes)
        assert semconv.IR_TEXT in theirs[arrived.span.name]


def test_the_limits_of_the_programs_environment_do_not_cut_what_is_ours(
    acme: Any,
    acme_instrumentor: KernelInstrumentor,
    receiver: Receiver,
    protocol: Protocol,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"):
        monkeypatch.setenv(variable, "8")
    for variable in ("OTEL_ATTRIBUTE_COUNT_LIMIT", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"):
        monkeypatch.setenv(variable, "4")
    run(acme, acme_instrumentor, receiver, protocol, 0.0)

    for arrived in receiver.trips:
        found = attributes_of(arrived.span.attributes)
        assert found[semconv.RECORD_SIZE] == len(found)
        assert found[semconv.BUILD] == "acme 1.2; sm_90"
    assert 2 == len(receiver.trips)


def test_a_sampler_of_the_programs_environment_does_not_drop_what_is_ours(
    acme: Any,
    acme_instrumentor: KernelInstrumentor,
    receiver: Receiver,
    protocol: Protocol,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    run(acme, acme_instrumentor, receiver, protocol, 0.0)

    assert 2 == len(receiver.trips)


def test_a_program_without_any_provider_has_its_trips_too(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    acme_instrumentor.instrument(otlp=receiver.endpoint(protocol))
    seen: list[trace.Span] = []
    acme.Compiler().compile("f", lambda: seen.append(trace.get_current_span()))
    private = pipeline.current().spans[1].tracer_provider
    assert isinstance(private, TracerProvider)
    private.shutdown()

    (arrived,) = receiver.trips
    assert b"" == arrived.span.parent_span_id
    assert not seen[0].get_span_context().is_valid


def test_texts_of_a_batch_larger_than_a_message_all_arrive(
    acme: Any, acme_instrumentor: KernelInstrumentor, receiver: Receiver, protocol: Protocol
) -> None:
    acme_instrumentor.instrument(otlp=receiver.endpoint(protocol), level="full")
    compiler = acme.Compiler()
    for number in range(100):
        compiler.compile(f"f{number}", ir="x" * 60_000, source="y" * 60_000)
    private = pipeline.current().spans[1].tracer_provider
    assert isinstance(private, TracerProvider)
    private.shutdown()

    assert {f"compile acme.f{number}" for number in range(100)} == {
        arrived.span.name for arrived in receiver.trips
    }


def test_ids_are_not_drawn_from_the_program_s_random_numbers(receiver: Receiver) -> None:
    # Ranks seed them alike, and each counts on the numbers that follow.
    provider: Any = private_provider(receiver.endpoint("http/protobuf"))
    spans = Spans(provider, private=True)
    ids: set[int] = set()
    for _ in range(2):
        random.seed(7)
        before = random.getstate()
        context = spans.start_plain("acme", "compile k", {}, 1, None).get_span_context()
        ids |= {context.trace_id, context.span_id}

        assert before == random.getstate()
    provider.shutdown()

    assert 4 == len(ids)
