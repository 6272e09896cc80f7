"""Reports the trips and spans of each part of a program, one JSON line each."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Generator, Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext

from otel_kernel import faults, pipeline
from otel_kernel.instrumentors.torch import TorchInstrumentor
from otel_kernel.records import Trip

_part = "start"


def _say(kind: str, value: object) -> None:
    with open(os.environ["REPORT"], "a", encoding="utf-8") as file:  # noqa: PTH123 - one line, whole
        file.write(json.dumps({"part": _part, "kind": kind, "value": value}) + "\n")


def _context(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


class _Sink:
    wants_start = False

    def started(self, trip: Trip) -> None:
        raise AssertionError("a sink that does not want starts got one")

    def finished(self, trip: Trip) -> None:
        _say("trip", trip.to_json())


class _Spans(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        for span in spans:
            _say(
                "span",
                {
                    "name": span.name,
                    "status": span.status.status_code.name,
                    "description": span.status.description,
                    "id": f"{_context(span).span_id:016x}",
                    "parent": f"{span.parent.span_id:016x}" if span.parent else None,
                    "attributes": dict(span.attributes or {}),
                },
            )
        return SpanExportResult.SUCCESS


def watch(**options: Any) -> TorchInstrumentor:
    """Instrument torch and report from here on; a fault of ours raises."""
    faults.reraise = True
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(_Spans()))
    instrumentor = TorchInstrumentor()
    instrumentor.instrument(tracer_provider=provider, **options)
    pipeline.add_sink(_Sink())
    return instrumentor


@contextlib.contextmanager
def part(name: str) -> Generator[None]:
    """Give what happens inside a name."""
    global _part
    before, _part = _part, name
    try:
        yield
    finally:
        _part = before


def value(name: str, what: object) -> None:
    """Report a value."""
    _say("value", {name: what})


def raised_by(call: Callable[[], object]) -> str | None:
    """Return the class of what `call` raised, or None."""
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return None


def current() -> str:
    """Return the name of the part."""
    return _part
