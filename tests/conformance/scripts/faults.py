"""Scripts in which a part of ours fails."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from conformance.harness import adapter, kernels, value, watch, wrap_points
from otel_kernel.records import Trip


def raising_readers() -> None:
    """Let each line of the instrumentor that a trip executes raise once, in a trip of its own."""
    counts = _count_calls()
    watch(level="full")
    program = kernels()
    program.another(0)  # what only a first trip executes, such as filling a cache, cannot fail again below
    lines = _executed(lambda: program.another(1))
    seen: list[Any] = []
    for n, line in enumerate(lines, start=2):
        counts.clear()
        with _Fault(line) as fault:
            result = program.another(n)
        assert fault.raised, f"{line} was not executed again"
        seen.append([result, counts.copy()])
    value("lines", [f"{Path(file).name}:{number}" for file, number in lines])
    value("seen", seen)


def without_readers() -> None:
    """Compile the same kernels without us, as many as the second word on the command line says."""
    counts = _count_calls()
    program = kernels()
    program.another(0)
    program.another(1)
    seen: list[Any] = []
    for n in range(2, int(sys.argv[2]) + 2):
        counts.clear()
        result = program.another(n)
        seen.append([result, counts.copy()])
    value("seen", seen)


def _count_calls() -> dict[str, int]:
    counts: dict[str, int] = {}

    def count(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
        name = wrapped.__qualname__
        counts[name] = counts.get(name, 0) + 1
        return wrapped(*args, **kwargs)

    wrap_points(count)
    return counts


Line = tuple[str, int]


def _folder() -> str:
    module = adapter().instrumentor.partition(":")[0]
    file = importlib.import_module(module).__file__
    assert file is not None
    return str(Path(file).parent)


def _executed(call: Callable[[], object]) -> Sequence[Line]:
    """Return the lines of the instrumentor that `call` executes, each once, in order."""
    lines: dict[Line, None] = {}
    folder = _folder()

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(folder):
            return None
        if event == "line":
            lines[frame.f_code.co_filename, frame.f_lineno] = None
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return list(lines)


class _Fault:
    """Raises at a line the first time that it is executed."""

    def __init__(self, line: Line) -> None:
        self._line = line
        # A class of its own, since a cause is told from others by where it was raised and by its class.
        self._error: type[Exception] = type(f"Fault_{Path(line[0]).stem}_{line[1]}", (Exception,), {})
        self.raised = False

    def __enter__(self) -> _Fault:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _argument: object) -> Any:
        if frame.f_code.co_filename != self._line[0]:
            return None
        if event == "line" and frame.f_lineno == self._line[1] and not self.raised:
            self.raised = True
            raise self._error
        return self._trace


class RaisingSink:
    """Fails at every trip."""

    wants_start = True

    def started(self, trip: Trip) -> None:
        raise LookupError("the sink fails at the start")

    def finished(self, trip: Trip) -> None:
        raise LookupError("the sink fails at the end")


def raising_sink() -> None:
    from otel_kernel.pipeline import add_sink

    add_sink(RaisingSink())
    counts = _count_calls()
    watch()
    program = kernels()
    value("results", [program.main(), program.second()])
    value("counts", counts)


def raising_exporter() -> None:
    """Let an exporter fail, which the SDK catches, and a processor at the end, which it does not."""
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    from conformance.spans import tracer_provider

    class RaisingExporter(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            raise LookupError("the exporter fails")

    class RaisingProcessor(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            raise LookupError("the processor fails at the end")

    _with_telemetry(tracer_provider(RaisingExporter(), processors=[RaisingProcessor()]))


def raising_start() -> None:
    """Let a processor fail when a span starts."""
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import Span, SpanProcessor

    from conformance.spans import tracer_provider

    class RaisingProcessor(SpanProcessor):
        def on_start(self, span: Span, parent_context: Context | None = None) -> None:
            raise LookupError("the processor fails at the start")

    _with_telemetry(tracer_provider(processors=[RaisingProcessor()]))


def _with_telemetry(provider: object) -> None:
    counts = _count_calls()
    watch(tracer_provider=provider)
    program = kernels()
    value("results", [program.main(), program.second()])
    value("counts", counts)


def without_faults() -> None:
    counts = _count_calls()
    program = kernels()
    value("results", [program.main(), program.second()])
    value("counts", counts)
