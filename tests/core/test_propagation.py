"""A trace context on its way to another process."""

from __future__ import annotations

import json

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span

import otel_kernel


@pytest.fixture
def span() -> Span:
    """A span that is not current."""
    return TracerProvider(shutdown_on_exit=False).get_tracer("shop").start_span("GET /")


def test_the_context_comes_out_of_a_message_as_it_went_in(span: Span) -> None:
    with trace.use_span(span):
        message = json.dumps(otel_kernel.outgoing_context())
    with otel_kernel.incoming_context(json.loads(message)):
        inside = trace.get_current_span().get_span_context()

    assert (span.get_span_context().trace_id, span.get_span_context().span_id) == (
        inside.trace_id,
        inside.span_id,
    )
    assert inside.is_remote
    assert not trace.get_current_span().get_span_context().is_valid


def test_what_goes_along_is_what_the_program_s_propagators_say() -> None:
    token = context.attach(baggage.set_baggage("tenant", "shop"))
    carrier = otel_kernel.outgoing_context()
    context.detach(token)
    with otel_kernel.incoming_context(carrier):
        assert "shop" == baggage.get_baggage("tenant")


@pytest.mark.parametrize("carrier", [None, {}], ids=["none", "empty"])
def test_a_message_without_a_context_changes_nothing(span: Span, carrier: dict[str, str] | None) -> None:
    assert {} == otel_kernel.outgoing_context()
    with trace.use_span(span), otel_kernel.incoming_context(carrier):
        assert span is trace.get_current_span()


def test_the_context_is_left_on_an_error_too(span: Span) -> None:
    with trace.use_span(span):
        carrier = otel_kernel.outgoing_context()
    with pytest.raises(LookupError), otel_kernel.incoming_context(carrier):
        raise LookupError

    assert not trace.get_current_span().get_span_context().is_valid
