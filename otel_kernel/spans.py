"""Trips as spans and measurements of one tracer provider."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.trace import (
    INVALID_SPAN_CONTEXT,
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
)

from otel_kernel import __version__, mapping, semconv, states
from otel_kernel.records import AttributeValue, Trip
from otel_kernel.span_ids import draw_own_ids
from otel_kernel.texts import TextFiles

if TYPE_CHECKING:
    from otel_kernel.trip import OpenTrip

_in_flight: dict[int, int] = {}
"""Monotonic start in ns of each trip in flight, for the gauge; by a ticket, so that no lock is needed."""

_tickets = itertools.count()

os.register_at_fork(after_in_child=_in_flight.clear)  # the parent's trips are none of the child's


def trip_began() -> int:
    """Count a trip as in flight and return the ticket that `trip_ended` takes."""
    ticket = next(_tickets)
    _in_flight[ticket] = time.monotonic_ns()
    return ticket


def trip_ended(ticket: int) -> None:
    """Count the trip with this ticket as over."""
    _in_flight.pop(ticket, None)


def oldest_active() -> float:
    """Return the age in seconds of the oldest trip in flight, 0 with none."""
    started = min(_in_flight.copy().values(), default=None)
    return 0.0 if started is None else (time.monotonic_ns() - started) / 1e9


def resolved(provider: metrics.MeterProvider | None) -> metrics.MeterProvider:
    """Return the provider that a program means by `provider`: None is the global one of the moment."""
    return metrics.get_meter_provider() if provider is None else provider


class Measurements:
    """The instruments of one meter provider.

    A meter keeps an instrument with its first callbacks, which cannot be taken back: they are made once, and
    observe nothing while `silent`.
    """

    def __init__(self, provider: metrics.MeterProvider | None) -> None:
        self._provider = weakref.ref(provider) if provider is not None else None
        self.silent = False
        meter = metrics.get_meter("otel_kernel", __version__, provider)
        duration, oldest, points = (
            semconv.METRICS[name]
            for name in (semconv.DURATION_METRIC, semconv.OLDEST_ACTIVE_METRIC, semconv.POINTS_METRIC)
        )
        self._duration = meter.create_histogram(
            duration.name,
            unit=duration.unit,
            description=duration.brief,
            explicit_bucket_boundaries_advisory=semconv.DURATION_BUCKETS,
        )
        meter.create_observable_gauge(oldest.name, [self._observe_oldest], oldest.unit, oldest.brief)
        meter.create_observable_gauge(points.name, [self._observe_points], points.unit, points.brief)

    @property
    def provider(self) -> metrics.MeterProvider | None:
        """The provider, or None where it is gone."""
        return resolved(None) if self._provider is None else self._provider()

    def measure(self, span: Span, trip: Trip | OpenTrip, duration: int) -> None:
        """Measure a trip that was not abandoned; `duration` is in ns."""
        attributes: dict[str, str | bool] = {semconv.RUNTIME: trip.runtime, semconv.LAYER: trip.layer}
        if trip.outcome is not None:
            attributes[semconv.OUTCOME] = trip.outcome.value
        if trip.error_type is not None:
            attributes[semconv.ERROR_TYPE] = trip.error_type
        for name in (semconv.PHASE, semconv.STORE_STORED):
            value = trip.attributes.get(name)
            if isinstance(value, (str, bool)):
                attributes[name] = value
        # Inside the span's context, so that an exemplar leads from a slow bucket to the trace.
        self._duration.record(duration / 1e9, attributes, context=trace.set_span_in_context(span))

    def _observe_oldest(self, _options: CallbackOptions) -> Iterable[Observation]:
        return () if self.silent or states.are_over() else (Observation(oldest_active()),)

    def _observe_points(self, _options: CallbackOptions) -> Iterable[Observation]:
        if self.silent:
            return ()
        return [
            Observation(number, {semconv.RUNTIME: runtime, semconv.POINTS_STATE: state})
            for runtime, state, number in states.of_points()
        ]


_measurements: list[Measurements] = []


def _measurements_of(provider: metrics.MeterProvider | None) -> Measurements:
    wanted = resolved(provider)
    _measurements[:] = [each for each in _measurements if each.provider is not None]
    for each in _measurements:
        if each.provider is wanted:
            return each
    made = Measurements(provider)
    _measurements.append(made)
    return made


class Spans:
    """Makes the spans, and where `meter_provider` is used the measurements, of all trips of the process.

    Args:
        tracer_provider: the provider, or None for the global one.
        meter_provider: the provider, or None for the global one.
        private: whether the provider is ours alone: its spans never become the program's current span, and
            no measurement is made, since the program's own provider makes it.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        *,
        private: bool = False,
    ) -> None:
        self.private = private
        self.tracer_provider = tracer_provider
        self.meter_provider = meter_provider
        self._tracers: dict[str, trace.Tracer] = {}
        self._measurements = None if private else _measurements_of(meter_provider)

    def silence(self) -> None:
        """Make the gauges observe nothing."""
        if self._measurements is not None:
            self._measurements.silent = True

    def resume(self) -> None:
        """Undo `silence`."""
        if self._measurements is not None:
            self._measurements.silent = False

    def start(self, trip: Trip | OpenTrip, parent: Span | None) -> Span:
        """Start the span of a trip.

        Args:
            trip: the trip.
            parent: our span around it, which a private provider has in no context.
        """
        return self.start_plain(
            trip.runtime, f"compile {trip.kernel}", mapping.start_attributes(trip), trip.started_ns, parent
        )

    def start_plain(
        self,
        runtime: str,
        name: str,
        attributes: Mapping[str, AttributeValue],
        started_ns: int,
        parent: Span | None,
        link: SpanContext | None = None,
    ) -> Span:
        """Start a span.

        Args:
            runtime: names the scope.
            name: of the span.
            attributes: that samplers see.
            started_ns: wall clock.
            parent: our span around it, which a private provider has in no context.
            link: a span that it belongs to and that has ended.
        """
        tracer = self._tracers.get(runtime)
        if tracer is None:
            tracer = trace.get_tracer(semconv.SCOPE_PREFIX + runtime, __version__, self.tracer_provider)
            draw_own_ids(tracer)
            is_settled = not isinstance(tracer, trace.ProxyTracer)
            if is_settled:  # else the program may yet set its provider
                self._tracers[runtime] = tracer
        return tracer.start_span(
            name,
            context=trace.set_span_in_context(parent) if self.private and parent is not None else None,
            kind=SpanKind.INTERNAL,
            attributes=attributes,
            links=(Link(link),) if link is not None and link.is_valid else (),
            start_time=started_ns,
            record_exception=False,
            set_status_on_exception=False,
        )

    def end(
        self,
        span: Span,
        trip: Trip | OpenTrip,
        *,
        inline_limit: int,
        texts: TextFiles | None,
        error: BaseException | None,
    ) -> None:
        """Write the finished trip on its span, measure it and end the span.

        Args:
            span: what `start` returned.
            trip: the trip as it ended.
            inline_limit: bytes up to which a text is an attribute.
            texts: where longer texts go.
            error: the exception to add as an event, at level full.
        """
        duration = trip.duration_ns or 0
        try:
            if span.is_recording():
                self._write(span, trip, inline_limit, texts, error)
        finally:
            try:
                if self._measurements is not None and trip.abandoned is None:
                    self._measurements.measure(span, trip, duration)
            finally:
                span.end(end_time=trip.started_ns + duration)

    def _write(
        self,
        span: Span,
        trip: Trip | OpenTrip,
        inline_limit: int,
        texts: TextFiles | None,
        error: BaseException | None,
    ) -> None:
        span.set_attributes(mapping.to_attributes(trip, inline_limit=inline_limit, texts=texts))
        if trip.error_type is not None:
            span.set_status(Status(StatusCode.ERROR, trip.message))
            if error is not None:
                with contextlib.suppress(Exception):  # the program's exception may raise when it is printed
                    span.record_exception(error)


def ids(span: Span) -> tuple[str | None, str | None]:
    """Return the trace id and the span id in hex, or None twice where no SDK made the span."""
    context = span.get_span_context()
    if context == INVALID_SPAN_CONTEXT or not context.is_valid:
        return None, None
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"
