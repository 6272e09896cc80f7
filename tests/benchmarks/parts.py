"""Where the time of one trip goes: each part of it in its place, in microseconds.

A clock stands around each part while whole trips run, so that processor caches are as they are in a trip. What a
part calls that is a part itself counts there alone, and the time that the clocks take is measured and taken off.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from statistics import median
from typing import Any, Final
from unittest.mock import patch

import acme.compiler
from acme_instrumentor import read_compile
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import Span, Tracer, TracerProvider

from benchmarks.harness import Line, shown
from otel_kernel import mapping, pending, pipeline, shapes
from otel_kernel import trip as trips
from otel_kernel.options import Options
from otel_kernel.patching import Point, install
from otel_kernel.pipeline import Pipeline
from otel_kernel.shapes import trip
from otel_kernel.spans import Measurements, Spans
from otel_kernel.trip import OpenTrip

_TRIPS: Final = 2_000
_ROUNDS: Final = 9

_CALL: Final = "wrappers around the call"

_PARTS: Final[dict[str, tuple[tuple[Any, str], ...]]] = {
    "the SDK starts the span": ((Tracer, "start_span"),),
    "the SDK sets the attributes": ((Span, "set_attributes"),),
    "the SDK ends the span": ((Span, "end"),),
    "the SDK records in the histogram": ((Histogram, "record"),),
    "whether a trip is wanted here": ((shapes, "wanted"), (pending, "settle")),
    "the reader and the guards around it": ((shapes, "_begin"), (shapes, "_end")),
    "the open trip": ((OpenTrip, "__init__"),),
    "how the span starts": ((OpenTrip, "begin"), (Spans, "start"), (mapping, "start_attributes")),
    "context and clocks": ((OpenTrip, "resume"), (OpenTrip, "stop")),
    "process, thread, phase and rank": ((trips, "locate"),),
    "checking and completing the fields": ((OpenTrip, "finish"), (trips, "complete")),
    "writing the attributes, with number and length": ((mapping, "to_attributes"),),
    "how the span ends": ((Spans, "end"), (Measurements, "measure")),
}


class _Clocks:
    """Clocks around functions, and the ns that each part has taken by itself."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}
        self._inside = [0.0]
        """Of each call that goes on, the ns of the parts inside of it."""
        self._own = self._around = 0.0
        """What a clock adds to its part, and to the one around it."""
        nothing = self.around(lambda: None, "nothing")
        samples = [self._sample(nothing) for _ in range(_TRIPS)]
        self._own, self._around = median(own for own, _ in samples), median(around for _, around in samples)

    def around(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        """Return the function with a clock around it."""
        now, inside, taken = time.perf_counter_ns, self._inside, self.taken

        def timed(*args: Any, **kwargs: Any) -> Any:
            inside.append(0.0)
            started = now()
            try:
                return function(*args, **kwargs)
            finally:
                took = now() - started
                taken[part] = taken.get(part, 0.0) + took - inside.pop() - self._own
                inside[-1] += took + self._around

        return timed

    def _sample(self, nothing: Callable[[], None]) -> tuple[float, float]:
        self.taken.clear()
        started = time.perf_counter_ns()
        nothing()
        took = time.perf_counter_ns() - started
        return self.taken["nothing"], took - self.taken["nothing"]

    def of_one(self, run: Callable[[], None]) -> dict[str, float]:
        """Return what one run takes, by part."""
        self.taken.clear()
        run()
        return dict(self.taken)


def _compile() -> None:
    acme.compiler.Compiler().compile("k")


def _medians(samples: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {part: median(sample[part] for sample in samples) / 1000 for part in samples[0]}


def lines() -> Iterator[Line]:
    """Measure the parts of a trip with few attributes and metrics."""
    spans = Spans(
        TracerProvider(shutdown_on_exit=False),
        MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False),
    )
    pipeline._current = Pipeline(Options(), (spans,), (), None)  # pyright: ignore[reportPrivateUsage] - the quick way
    clocks = _Clocks()
    with ExitStack() as stack:
        for part, functions in _PARTS.items():
            for owner, name in functions:
                stack.enter_context(patch.object(owner, name, clocks.around(getattr(owner, name), part)))
        whole = clocks.around(_compile, _CALL)
        installed = install("acme", Point("acme.compiler", "Compiler.compile", trip(read_compile), ("name",)))
        rounds = [_medians([clocks.of_one(whole) for _ in range(_TRIPS)]) for _ in range(_ROUNDS)]
        installed.restore()
    for part in (*_PARTS, _CALL):
        yield shown(f"part of a trip: {part}", [each[part] for each in rounds], " µs")
