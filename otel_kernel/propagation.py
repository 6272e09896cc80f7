"""A trace context on its way to another process, in whatever message the program sends there anyway."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from opentelemetry import context, propagate


def outgoing() -> dict[str, str]:
    """Return the current context as OpenTelemetry's propagators put it into headers; empty without a span."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier


@contextmanager
def incoming(carrier: Mapping[str, str] | None) -> Generator[None]:
    """Run code in the context that `outgoing` returned elsewhere; without one, in the context that is current."""
    token = context.attach(propagate.extract(carrier or {}, context.get_current()))
    try:
        yield
    finally:
        context.detach(token)
