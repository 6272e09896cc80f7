"""Trips as a runtime with a store tells of them, in any number, and their spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_kernel import semconv
from otel_kernel.mapping import start_attributes, to_attributes
from otel_kernel.records import (
    AttributeValue,
    CompilationOutcome,
    KernelCacheKey,
    Session,
    TextDigest,
    Trip,
)

COMPILED, LOADED, _ = CompilationOutcome
START_NS: Final = 1_700_000_000 * 10**9
KERNELS: Final = 200
"""Different kernels of a session; it compiles all of them, then loads all, and so on."""

_COMPONENTS: Final = {
    "signature": "(float64, float64)",
    "cpu": "znver3",
    "options": "nopython=True, boundscheck=None, fastmath=set(), error_model=python",
    "source_stamp": "ab" * 32,
}


def session_of(number: int) -> Session:
    """Return the session with this number; ten sessions are a run."""
    return Session(id=f"{number:032x}", run=f"{number // 10:032x}")


def a_trip(seq: int, session: Session) -> Trip:
    """Return a trip of level basic with some thirty attributes."""
    kernel = seq % KERNELS
    outcome = COMPILED if seq % (2 * KERNELS) < KERNELS else LOADED
    digest = TextDigest(f"{kernel:064x}", 4096)
    attributes: dict[str, AttributeValue] = {
        semconv.OUTCOME_FROM: "runtime",
        semconv.PROCESS_PID: 4711,
        semconv.THREAD_ID: 140_000_000_000_000,
        semconv.CODE_FUNCTION_NAME: f"shop.prices.kernel_{kernel}",
        semconv.CODE_FILE_PATH: "/srv/app/shop/prices.py",
        semconv.CODE_LINE_NUMBER: kernel,
        semconv.SPECIALIZATION: "(float64, float64)",
        semconv.TARGET: "cpu:znver3",
        semconv.BUILD: "numba 0.68.1; llvmlite 0.50.0; LLVM 22.1.0",
        semconv.IDENTITY: f"{kernel:032x}",
        semconv.STORE_KIND: "numba.file",
        semconv.STORE_LOCATION: "/srv/app/shop/__pycache__",
        semconv.STORE_ENTRY: f"prices.kernel_{kernel}-10.py311.1.nbc",
        semconv.DEVICE_LOADED: True,
        semconv.ARTIFACT_SIZE: 22_025,
    }
    attributes.update((semconv.KEY_COMPONENT + name, value) for name, value in _COMPONENTS.items())
    if outcome is COMPILED:
        attributes[semconv.STORE_STORED] = True
        attributes.update((semconv.STAGE + name, 1_000_000) for name in ("typing", "lowering", "saving"))
    return Trip(
        session=session,
        seq=seq,
        runtime="numba",
        layer="numba",
        kernel=f"shop.prices.kernel_{kernel}",
        started_ns=START_NS + seq * 20_000_000,
        duration_ns=15_000_000 if outcome is COMPILED else 1_000_000,
        outcome=outcome,
        key=KernelCacheKey(id=kernel, build_id=1),
        source=digest if outcome is COMPILED else None,
        trace_id=f"{seq + 1:032x}",
        span_id=f"{seq + 1:016x}",
        attributes=attributes,
    )


def trips(count: int, sessions: int = 1) -> Iterator[Trip]:
    """Yield so many trips of each session."""
    for number in range(sessions):
        session = session_of(number)
        for seq in range(count):
            yield a_trip(seq, session)


def spans_of(some: Iterable[Trip]) -> list[ReadableSpan]:
    """Return the finished spans of trips."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("otel_kernel.numba")
    for trip in some:
        span = tracer.start_span(f"compile {trip.kernel}", attributes=start_attributes(trip))
        span.set_attributes(to_attributes(trip))
        span.end()
    return list(exporter.get_finished_spans())


def in_batches(spans: Iterable[ReadableSpan], size: int) -> Iterator[list[ReadableSpan]]:
    """Yield spans as a batch processor hands them to an exporter."""
    remaining = iter(spans)
    while batch := list(islice(remaining, size)):
        yield batch


def write_otlp(path: Path, some: Iterable[Trip], *, batch: int) -> Path:
    """Write the spans of trips as OTLP JSON, so many a line."""
    exporter: SpanExporter = FileSpanExporter(path)
    for spans in in_batches(spans_of(some), batch):
        exporter.export(spans)
    exporter.shutdown()  # pyright: ignore[reportUnknownMemberType] - the SDK gives it no types
    return path
