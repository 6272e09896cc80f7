"""One trip, beside the SDK's span and histogram that it cannot do without.

Every variant compiles one kernel of acme, the small runtime of the core's tests, which does next to nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace

import acme.compiler
from acme_instrumentor import read_compile
from opentelemetry import context as otel_context
from opentelemetry import metrics, trace
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from telemetry import CollectingSink

from benchmarks.harness import Line, Rounds, at_most, processor_seconds, shown
from otel_kernel import mapping, pipeline, semconv
from otel_kernel.options import Options
from otel_kernel.patching import Point, install
from otel_kernel.pipeline import Pipeline
from otel_kernel.records import CompilationOutcome, Trip
from otel_kernel.shapes import Call, TripReader, trip
from otel_kernel.spans import Spans
from otel_kernel.trip import Begin, OpenTrip

_ROUNDS = 60
_CALLS = 200
"""Of each variant in a round."""

_COMPONENTS = {
    "signature": "(float64,)",
    "target": "cpu:znver3",
    "options": "OPT=3",
    "source_stamp": "ab" * 32,
}


def _read_richly(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read all that a runtime with a store has to tell."""
    if call.argument("name") in call.instance.kernels:
        return
    done = yield Begin(kernel=f"acme.{call.argument('name')}", layer="acme")
    done.outcome = CompilationOutcome.COMPILED
    done.set_key(build="acme 1.2; LLVM 22.1", rest="k\n(float64,)", components=_COMPONENTS, entry="k-1.bin")
    done.set(semconv.SPECIALIZATION, "(float64,)")
    done.set(semconv.TARGET, "cpu:znver3")
    done.set(semconv.BUILD, "acme 1.2; LLVM 22.1")
    done.set(semconv.STORE_KIND, "acme.file")
    done.set(semconv.STORE_LOCATION, "/srv/app/__acme__")
    done.set(semconv.STORE_STORED, True)
    done.set(semconv.ARTIFACT_SIZE, 22025)
    done.set_code_digest("c0ffee")
    for stage in ("typing", "lowering", "assembling"):
        done.add_stage(stage, 1_000_000)


def _compile() -> None:
    acme.compiler.Compiler().compile("k")


def _compile_suppressed() -> None:
    with suppress_instrumentation():
        _compile()


class _Bench:
    """The variants for one reader."""

    def __init__(self, read: TripReader) -> None:
        self._point = Point("acme.compiler", "Compiler.compile", trip(read), ("name",))
        self._tracer_provider = TracerProvider(shutdown_on_exit=False)
        self._meter_provider = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
        self._metered = self._pipeline(self._meter_provider, "basic")
        self._unmetered = self._pipeline(NoOpMeterProvider(), "basic")
        self._off = self._pipeline(self._meter_provider, "off")
        self._example = self._trip()
        self.attributes = len(mapping.to_attributes(self._example))

    def _pipeline(self, meter_provider: metrics.MeterProvider, level: str) -> Pipeline:
        spans = Spans(self._tracer_provider, meter_provider)
        return Pipeline(Options(level=level), (spans,), (), None)

    def _trip(self) -> Trip:
        """Return a trip as this reader fills it."""
        sink = CollectingSink()
        self._instrumented(replace(self._metered, sinks=(sink,)), _compile)
        return sink.trips[0]

    def _instrumented(self, state: Pipeline, run: Callable[[], None]) -> float:
        pipeline._current = state  # pyright: ignore[reportPrivateUsage] - the quick way from one to another
        patch = install("acme", self._point)
        took = processor_seconds(run, _CALLS)
        patch.restore()
        return took

    def _bare(self, histogram: metrics.Histogram | None) -> Callable[[], None]:
        """Return what makes a span by hand with the attributes of a trip, and measures it."""
        tracer = self._tracer_provider.get_tracer("bare", "1")
        start, end = mapping.start_attributes(self._example), mapping.to_attributes(self._example)
        name = f"compile {self._example.kernel}"
        measured = {
            name: value
            for name, value in end.items()
            if name in semconv.METRICS[semconv.DURATION_METRIC].attributes
        }

        def run() -> None:
            started_ns, started = time.time_ns(), time.perf_counter_ns()
            span = tracer.start_span(name, attributes=start, start_time=started_ns)
            context = trace.set_span_in_context(span)
            token = otel_context.attach(context)
            _compile()
            otel_context.detach(token)
            duration = time.perf_counter_ns() - started
            span.set_attributes(end)
            if histogram is not None:
                histogram.record(duration / 1e9, measured, context=context)
            span.end(end_time=started_ns + duration)

        return run

    def rounds(self) -> Rounds:
        """Measure."""
        histogram = self._meter_provider.get_meter("bare").create_histogram(
            "bare", explicit_bucket_boundaries_advisory=semconv.DURATION_BUCKETS
        )
        span, measured_span = self._bare(None), self._bare(histogram)
        return Rounds(
            {
                "plain": lambda: processor_seconds(_compile, _CALLS),
                "span": lambda: processor_seconds(span, _CALLS),
                "span and histogram": lambda: processor_seconds(measured_span, _CALLS),
                "trip without metrics": lambda: self._instrumented(self._unmetered, _compile),
                "trip": lambda: self._instrumented(self._metered, _compile),
                "level off": lambda: self._instrumented(self._off, _compile),
                "plain, suppressed": lambda: processor_seconds(_compile_suppressed, _CALLS),
                "suppressed": lambda: self._instrumented(self._metered, _compile_suppressed),
            },
            _ROUNDS,
        )


def lines() -> Iterator[Line]:
    """Measure a trip with few attributes and one with many."""
    rounds = None
    for name, read in (("few", read_compile), ("many", _read_richly)):
        bench = _Bench(read)
        rounds = bench.rounds()
        what = f"{name} attributes ({bench.attributes})"
        yield at_most(f"trip, {what} / span and histogram", 1.2, rounds.ratios("trip", "span and histogram"))
        yield at_most(
            f"trip without metrics, {what} / span", 1.2, rounds.ratios("trip without metrics", "span")
        )
    assert rounds is not None
    yield shown("span and histogram / span", rounds.ratios("span and histogram", "span"))
    yield shown(
        "call of a point at level off / a call that does nothing", rounds.ratios("level off", "plain")
    )
    yield shown(
        "call of a point, suppressed / a call that does nothing",
        rounds.ratios("suppressed", "plain, suppressed"),
    )
