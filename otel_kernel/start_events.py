"""A log event at the start of a trip: it tells of a hang, whose span never ends."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry._logs import Logger, LoggerProvider, SeverityNumber, get_logger
from opentelemetry.trace import Span

from otel_kernel import __version__, semconv
from otel_kernel.records import AttributeValue

if "event_name" not in inspect.signature(Logger.emit).parameters:
    raise ImportError("events need opentelemetry-api 1.38 or newer")


class StartEvents:
    """Emits the events.

    Args:
        provider: the provider of loggers, or None for the global one.
    """

    def __init__(self, provider: LoggerProvider | None = None) -> None:
        self.provider = provider
        self._loggers: dict[str, Logger] = {}

    def emit(self, runtime: str, kernel: str, attributes: Mapping[str, AttributeValue], span: Span) -> None:
        """Emit the event of a trip.

        Args:
            runtime: names the scope.
            kernel: the kernel's type.
            attributes: of the trip; those that the event has are taken.
            span: the trip's span, in whose context the event is.
        """
        logger = self._loggers.get(runtime)
        if logger is None:
            logger = get_logger(semconv.SCOPE_PREFIX + runtime, __version__, self.provider)
            self._loggers[runtime] = logger
        context = None if span is trace.INVALID_SPAN else trace.set_span_in_context(span)
        severity = SeverityNumber.INFO
        enabled = getattr(logger, "enabled", None)  # from version 1.45 on
        if enabled and not enabled(context=context, severity_number=severity, event_name=semconv.START_EVENT):
            return
        logger.emit(
            context=context,
            severity_number=severity,
            body=f"compile {kernel}",
            event_name=semconv.START_EVENT,
            attributes={name: attributes[name] for name in _ATTRIBUTES if name in attributes},
        )


_ATTRIBUTES = semconv.EVENTS[semconv.START_EVENT].attributes
