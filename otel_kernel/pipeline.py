"""Where the trips of this process go: one set of options, spans and sinks for all runtimes.

It lives here and not in an `instrument()` call because that call may come twice: once from
`opentelemetry-instrument` or `otel-kernel run`, and once from the program.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from otel_kernel import faults
from otel_kernel.options import Options, from_environment, merge
from otel_kernel.records import RecordLevel
from otel_kernel.sinks import Sink
from otel_kernel.spans import Spans, resolved
from otel_kernel.texts import TextFiles

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider

    from otel_kernel.start_events import StartEvents


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What the options have led to; replaced as a whole, so that a trip sees one state of it."""

    options: Options
    spans: tuple[Spans, ...]
    """The program's provider first, then a private one where `otlp` is set."""
    sinks: tuple[Sink, ...]
    texts: TextFiles | None
    logger_provider: LoggerProvider | None = None
    events: StartEvents | None = None
    level: RecordLevel = field(init=False)
    """That of the options."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", RecordLevel(self.options.level))


_lock = threading.Lock()
_current: Pipeline | None = None


def current() -> Pipeline:
    """Return the pipeline; the first call makes it from the environment."""
    pipeline = _current
    return pipeline if pipeline is not None else configure()


def configure(
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    logger_provider: LoggerProvider | None = None,
    **options: object,
) -> Pipeline:
    """Merge providers and options into the pipeline and return it.

    Args:
        tracer_provider: takes the spans from here on; None changes nothing.
        meter_provider: takes the measurements from here on; None changes nothing.
        logger_provider: takes the events from here on; None changes nothing.
        **options: fields of `Options`; a bad one is logged and left out.
    """
    global _current
    with _lock:
        before = _current
        known = before.options if before else from_environment()
        after = merge(known, options)
        spans = before.spans if before else (Spans(tracer_provider, meter_provider),)
        if before:
            spans = (_program_spans(spans[0], tracer_provider, meter_provider), *spans[1:])
        if before is None or before.options.otlp != after.otlp:
            spans = (spans[0], *_private_spans(after.otlp))
        sinks = before.sinks if before else ()
        if before is None or before.options.recording != after.recording:
            sinks = (*(sink for sink in sinks if not _is_recording(sink)), *_recording_sinks(after.recording))
        texts = TextFiles(Path(after.text_files)) if after.text_files is not None else None
        loggers = before.logger_provider if logger_provider is None and before else logger_provider
        events = _start_events(loggers, before) if after.start_events else None
        _current = Pipeline(after, spans, sinks, texts, loggers, events)
        if _current.level is RecordLevel.OFF:
            spans[0].silence()
        else:
            spans[0].resume()
        return _current


def add_sink(sink: Sink) -> None:
    """Hand every trip from here on to `sink` as well."""
    _change_sinks(lambda sinks: (*sinks, sink))


def remove_sink(sink: Sink) -> None:
    """Hand nothing to `sink` any more."""
    _change_sinks(lambda sinks: tuple(each for each in sinks if each is not sink))


def _change_sinks(change: Callable[[tuple[Sink, ...]], tuple[Sink, ...]]) -> None:
    global _current
    made = current()
    with _lock:
        pipeline = _current or made  # another thread may have changed it since
        _current = replace(pipeline, sinks=change(pipeline.sinks))


def _program_spans(
    present: Spans, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None
) -> Spans:
    traces = tracer_provider if tracer_provider is not None else present.tracer_provider
    meters = meter_provider if meter_provider is not None else present.meter_provider
    if traces is present.tracer_provider and resolved(meters) is resolved(present.meter_provider):
        return present
    after = Spans(traces, meters)
    present.silence()  # its gauges would go on: a callback cannot be taken back
    return after


def _is_recording(sink: Sink) -> bool:
    from otel_kernel.recording.writer import RecordingSink

    return isinstance(sink, RecordingSink)


def _recording_sinks(path: str | Path | None) -> tuple[Sink, ...]:
    if path is None:
        return ()
    try:
        from otel_kernel.recording.writer import RecordingSink

        return (RecordingSink(Path(path)),)
    except Exception:
        faults.caught(f"opening the recording {path}")
        return ()


def _start_events(provider: LoggerProvider | None, before: Pipeline | None) -> StartEvents | None:
    if before is not None and before.options.start_events and before.logger_provider is provider:
        return before.events
    try:
        from otel_kernel.start_events import StartEvents

        return StartEvents(provider)
    except ImportError as error:
        faults.logger.error("option start_events is ignored: %s", error)
        return None


def _private_spans(url: str | None) -> tuple[Spans, ...]:
    if url is None:
        return ()
    try:
        from otel_kernel.otlp import private_provider

        return (Spans(private_provider(url), private=True),)
    except ImportError as error:
        faults.logger.error('nothing is exported to %s: %s; pip install "otel-kernel[otlp]"', url, error)
        return ()
    except Exception:
        faults.caught(f"setting up the export to {url}")
        return ()
