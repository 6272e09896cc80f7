"""What a trip costs, beside the SDK's span and histogram that it cannot do without.

Run it from the root of the repository: `python tests/benchmarks/bench_trip.py`. Every variant compiles one
kernel of acme, the small runtime of the core's tests, which does next to nothing. The variants take turns,
and each figure is the median over the rounds; trust the ratios and not the times.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS.parent), str(TESTS), str(TESTS / "core" / "runtime")]

# ruff: noqa: E402 - found on the path set above
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

from otel_kernel import mapping, pipeline, semconv
from otel_kernel.options import Options
from otel_kernel.patching import Point, install
from otel_kernel.pipeline import Pipeline
from otel_kernel.records import CompilationOutcome, Trip
from otel_kernel.shapes import Call, TripReader, trip
from otel_kernel.spans import Spans
from otel_kernel.trip import Begin, OpenTrip

COMPONENTS = {
    "signature": "(float64,)",
    "target": "cpu:znver3",
    "options": "OPT=3",
    "source_stamp": "ab" * 32,
}


def read_richly(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read all that a runtime with a store has to tell."""
    if call.argument("name") in call.instance.kernels:
        return
    done = yield Begin(kernel=f"acme.{call.argument('name')}", layer="acme")
    done.outcome = CompilationOutcome.COMPILED
    done.set_key(build="acme 1.2; LLVM 22.1", rest="k\n(float64,)", components=COMPONENTS, entry="k-1.bin")
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


READERS: dict[str, TripReader] = {"few": read_compile, "many": read_richly}


def compile_once() -> None:
    """Compile a kernel."""
    acme.compiler.Compiler().compile("k")


def compile_suppressed() -> None:
    """Compile a kernel under suppression."""
    with suppress_instrumentation():
        compile_once()


def seconds(run: Callable[[], None], calls: int) -> float:
    """Return the processor's time for one call; other processes do not count."""
    started = time.thread_time()
    for _ in range(calls):
        run()
    return (time.thread_time() - started) / calls


class Bench:
    """The variants for one reader."""

    def __init__(self, read: TripReader, calls: int) -> None:
        self.calls = calls
        self.point = Point("acme.compiler", "Compiler.compile", trip(read), ("name",))
        self.tracer_provider = TracerProvider(shutdown_on_exit=False)
        self.meter_provider = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
        self.metered = self._pipeline(self.meter_provider, "basic")
        self.unmetered = self._pipeline(NoOpMeterProvider(), "basic")
        self.off = self._pipeline(self.meter_provider, "off")
        self.example = self._example()
        self.histogram = self.meter_provider.get_meter("bare").create_histogram(
            "bare", explicit_bucket_boundaries_advisory=semconv.DURATION_BUCKETS
        )

    def _pipeline(self, meter_provider: metrics.MeterProvider, level: str) -> Pipeline:
        spans = Spans(self.tracer_provider, meter_provider)
        return Pipeline(Options(level=level), (spans,), (), None)

    def _example(self) -> Trip:
        """Return a trip as this reader fills it."""
        sink = CollectingSink()
        self._instrumented(replace(self.metered, sinks=(sink,)), compile_once)
        return sink.trips[0]

    def _instrumented(self, state: Pipeline, run: Callable[[], None]) -> float:
        pipeline._current = state  # pyright: ignore[reportPrivateUsage] - the quick way from one to another
        patch = install("acme", self.point)
        took = seconds(run, self.calls)
        patch.restore()
        return took

    def _bare(self, histogram: metrics.Histogram | None) -> Callable[[], None]:
        """Return what makes a span by hand with the attributes of a trip, and measures it."""
        tracer = self.tracer_provider.get_tracer("bare", "1")
        start, end = mapping.start_attributes(self.example), mapping.to_attributes(self.example)
        name = f"compile {self.example.kernel}"
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
            compile_once()
            otel_context.detach(token)
            duration = time.perf_counter_ns() - started
            span.set_attributes(end)
            if histogram is not None:
                histogram.record(duration / 1e9, measured, context=context)
            span.end(end_time=started_ns + duration)

        return run

    def round(self) -> dict[str, float]:
        """Return the seconds of one call of each variant."""
        return {
            "plain": seconds(compile_once, self.calls),
            "span": seconds(self._bare(None), self.calls),
            "span and histogram": seconds(self._bare(self.histogram), self.calls),
            "trip without metrics": self._instrumented(self.unmetered, compile_once),
            "trip": self._instrumented(self.metered, compile_once),
            "level off": self._instrumented(self.off, compile_once),
            "plain, suppressed": seconds(compile_suppressed, self.calls),
            "suppressed": self._instrumented(self.metered, compile_suppressed),
        }


RATIOS = (
    ("trip without metrics", "span", "at most 1.2"),
    ("trip", "span and histogram", "at most 1.2"),
    ("span and histogram", "span", "what a histogram costs by itself"),
    ("level off", "plain", "of a compile that does nothing"),
    ("suppressed", "plain, suppressed", "of a compile that does nothing"),
)


def main() -> None:
    """Print the ratios for a trip with few attributes and one with many."""
    parser = argparse.ArgumentParser(description="Print what a trip costs.")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=200, help="of each variant in a round")
    arguments = parser.parse_args()
    for name, read in READERS.items():
        bench = Bench(read, arguments.calls)
        bench.round()
        rounds = [bench.round() for _ in range(arguments.rounds)]
        print(f"{name} attributes ({len(mapping.to_attributes(bench.example))}):")
        for variant in rounds[0]:
            print(f"  {statistics.median(each[variant] for each in rounds) * 1e6:8.1f} us  {variant}")
        for over, under, note in RATIOS:
            ratio = statistics.median(each[over] / each[under] for each in rounds)
            print(f"  {ratio:8.2f}     {over} / {under} ({note})")


if __name__ == "__main__":
    main()
