"""Spans that stand beside trips: a parent around them, a load that came later."""

from __future__ import annotations

import contextvars
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Span, SpanContext, Status, StatusCode

from otel_kernel import faults, semconv, session
from otel_kernel.pipeline import Pipeline
from otel_kernel.records import AttributeValue, Session
from otel_kernel.spans import Spans
from otel_kernel.trip import enclosing, error_type, wanted


class SideSpan:
    """A span of ours that is no trip, in every provider of the pipeline. Sinks do not see it."""

    __slots__ = ("_spans", "_started", "_started_ns", "_tokens")

    def __init__(
        self,
        state: Pipeline,
        runtime: str,
        name: str,
        attributes: Mapping[str, AttributeValue],
        links: Sequence[SpanContext] = (),
    ) -> None:
        self._started_ns = time.time_ns()
        around = enclosing.get()
        self._spans: list[Span] = []
        for index, spans in enumerate(state.spans):
            parent = around[index] if index < len(around) else None
            link = links[index] if index < len(links) else None
            self._spans.append(self._start(spans, runtime, name, attributes, parent, link))
        self._tokens: tuple[contextvars.Token[Any], contextvars.Token[Sequence[Span]]] | None = None
        self._started = time.perf_counter_ns()

    def _start(
        self,
        spans: Spans,
        runtime: str,
        name: str,
        attributes: Mapping[str, AttributeValue],
        parent: Span | None,
        link: SpanContext | None,
    ) -> Span:
        try:
            return spans.start_plain(runtime, name, attributes, self._started_ns, parent, link)
        except Exception:
            faults.caught("starting a span")
            return trace.INVALID_SPAN

    def enter(self) -> None:
        """Become the current span until `leave`, which the same call must reach."""
        token = otel_context.attach(trace.set_span_in_context(self._spans[0]))
        self._tokens = (token, enclosing.set(self._spans))

    def leave(self) -> None:
        """Stop being the current span. It may be entered again, or ended."""
        if self._tokens is not None:
            context_token, enclosing_token = self._tokens
            self._tokens = None
            enclosing.reset(enclosing_token)
            otel_context.detach(context_token)

    def end(
        self, error: BaseException | None = None, attributes: Mapping[str, AttributeValue] | None = None
    ) -> None:
        """End the span.

        Args:
            error: what left the code that it stands for; only its class is told.
            attributes: what is known by now.
        """
        duration = max(0, time.perf_counter_ns() - self._started)
        told: dict[str, AttributeValue] = {**(attributes or {}), semconv.DURATION_NS: duration}
        if error is not None:
            told[semconv.ERROR_TYPE] = error_type(error)
        for span in self._spans:
            try:
                if span.is_recording():
                    span.set_attributes(told)
                    if error is not None:
                        span.set_status(Status(StatusCode.ERROR, error_type(error)))
                span.end(end_time=self._started_ns + duration)
            except Exception:
                faults.caught("ending a span")


def start_parent(
    runtime: str, verb: str, kernel: str, layer: str, attributes: Mapping[str, AttributeValue] | None = None
) -> SideSpan | None:
    """Start a span around trips, or return None where no trips are wanted.

    Args:
        runtime: of the trips.
        verb: what is done; with the kernel it is the name of the span.
        kernel: what it is done to.
        layer: of the trips.
        attributes: more that is known at start.
    """
    state = wanted()
    if state is None:
        return None
    here = session.current()
    return SideSpan(
        state,
        runtime,
        f"{verb} {kernel}",
        _start_attributes("parent", runtime, kernel, layer, here) | dict(attributes or {}),
    )


def start_load(
    runtime: str, kernel: str, layer: str, of: Session, seq: int, links: Sequence[SpanContext]
) -> SideSpan | None:
    """Start the span of a load that came after its trip had ended, or return None where none is wanted.

    Args:
        runtime: of the trip.
        kernel: that is loaded.
        layer: of the trip.
        of: session of the trip.
        seq: of the trip: with the session it names the trip also where that has no span.
        links: span of the trip in each provider.
    """
    state = wanted()
    if state is None:
        return None
    attributes = _start_attributes("load", runtime, kernel, layer, of)
    attributes[semconv.SESSION_SEQ] = seq
    return SideSpan(state, runtime, f"load {kernel}", attributes, links)


def _start_attributes(
    role: Literal["load", "parent"], runtime: str, kernel: str, layer: str, of: Session
) -> dict[str, AttributeValue]:
    return {
        semconv.RUNTIME: runtime,
        semconv.LAYER: layer,
        semconv.KERNEL_NAME: kernel,
        semconv.ROLE: role,
        semconv.SESSION_ID: of.id,
        semconv.SESSION_RUN: of.run,
        semconv.PROCESS_PID: os.getpid(),
        semconv.THREAD_ID: threading.get_native_id(),
    }
