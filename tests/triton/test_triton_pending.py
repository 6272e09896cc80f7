"""Every way in which a trip ends that waits for the load of its kernel."""

# Triton has no types that say enough.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import triton_kernels as kernels
from opentelemetry.trace import StatusCode
from telemetry import Telemetry
from triton.compiler import CompiledKernel
from triton.runtime.errors import OutOfResources
from triton_device import TELLS_OF_LAUNCHES, floats

from otel_kernel import semconv
from otel_kernel.instrumentors.triton import TritonInstrumentor
from otel_kernel.records import CompilationOutcome, Trip

pytestmark = pytest.mark.skipif(not TELLS_OF_LAUNCHES, reason="3.4 does not tell that a launch goes on")


class NoGridError(Exception):
    """The program fails after the compile and before the load."""


def no_grid(_meta: object) -> tuple[int]:
    raise NoGridError


def leave_waiting(size: int = 64) -> None:
    """Compile `scale` for a launch that never comes to its load."""
    with pytest.raises(NoGridError):
        kernels.scale[no_grid](floats(size), size=size)


def only_trip(telemetry: Telemetry) -> Trip:
    (trip,) = telemetry.trips
    return trip


def check_ended_without_load(telemetry: Telemetry, trip: Trip) -> None:
    span = next(
        span for span in telemetry.spans if (span.attributes or {}).get(semconv.SESSION_SEQ) == trip.seq
    )
    assert CompilationOutcome.COMPILED is trip.outcome
    assert trip.attributes[semconv.DEVICE_LOADED] is False
    assert semconv.STAGE + "load" not in trip.attributes
    assert span.start_time is not None
    assert trip.duration_ns is not None
    assert span.end_time == span.start_time + trip.duration_ns
    assert StatusCode.UNSET is span.status.status_code


def loads(telemetry: Telemetry) -> list[Any]:
    return [span for span in telemetry.spans if span.name.startswith("load ")]


def test_a_trip_that_waits_is_not_told_of(triton_telemetry: Telemetry) -> None:
    leave_waiting()

    assert [] == triton_telemetry.trips
    assert [] == triton_telemetry.spans


def test_a_trip_that_waits_is_not_in_flight(triton_telemetry: Telemetry) -> None:
    from otel_kernel.spans import oldest_active

    leave_waiting()

    assert 0.0 == oldest_active()


def test_it_ends_when_the_load_ends(triton_telemetry: Telemetry) -> None:
    kernels.scale[(1,)](floats(64), size=64)

    assert only_trip(triton_telemetry).attributes[semconv.DEVICE_LOADED] is True


def test_it_fails_when_the_load_fails(triton_telemetry: Telemetry, device: Any) -> None:
    device.refusal = "no room"
    with pytest.raises(RuntimeError, match="no room") as raised:
        kernels.scale[(1,)](floats(64), size=64)

    trip = only_trip(triton_telemetry)
    (span,) = triton_telemetry.spans
    assert raised.value.__context__ is None
    assert ("failed", "RuntimeError", "RuntimeError") == (trip.state, trip.error_type, trip.message)
    assert StatusCode.ERROR is span.status.status_code
    assert trip.key is not None
    assert semconv.STAGE + "load" in trip.attributes
    assert semconv.DEVICE_LOADED not in trip.attributes


def test_a_load_that_is_tried_again_is_a_span_of_its_own(triton_telemetry: Telemetry, device: Any) -> None:
    device.refusal = "no room"
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no room"):
            kernels.scale[(1,)](floats(64), size=64)
    device.refusal = None
    kernel = kernels.scale[(1,)](floats(64), size=64)
    kernels.scale[(1,)](floats(64), size=64)

    trip = only_trip(triton_telemetry)
    again, well = loads(triton_telemetry)
    assert "failed" == trip.state
    assert (StatusCode.ERROR, StatusCode.UNSET) == (again.status.status_code, well.status.status_code)
    assert "RuntimeError" == again.attributes["error.type"]
    assert {trip.span_id} == {f"{span.links[0].context.span_id:016x}" for span in (again, well)}
    assert type(kernel) is CompiledKernel


def test_a_kernel_that_asks_for_too_much_fails_once_it_is_loaded(
    triton_telemetry: Telemetry, device: Any
) -> None:
    device.threads = 64
    for _ in range(2):
        with pytest.raises(OutOfResources, match="threads"):
            kernels.scale[(1,)](floats(64), size=64)

    # The driver has it, so that the second launch loads nothing: it raises what Triton has kept.
    assert "triton.runtime.errors.OutOfResources" == only_trip(triton_telemetry).error_type
    assert 1 == device.loads
    assert [] == loads(triton_telemetry)


def test_it_ends_when_the_next_trip_of_the_thread_begins(triton_telemetry: Telemetry) -> None:
    leave_waiting()
    kernels.shift[(1,)](floats(64), 0.5, size=64)

    waited, following = triton_telemetry.trips
    check_ended_without_load(triton_telemetry, waited)
    assert following.attributes[semconv.DEVICE_LOADED] is True
    assert (None, None) == (waited.parent_seq, following.parent_seq)


def test_a_load_after_that_is_a_span_of_its_own(triton_telemetry: Telemetry) -> None:
    leave_waiting()
    kernels.shift[(1,)](floats(64), 0.5, size=64)
    kernel = kernels.scale[(1,)](floats(64), size=64)

    waited, _ = triton_telemetry.trips
    (load,) = loads(triton_telemetry)
    assert "load triton_kernels.scale" == load.name
    assert waited.span_id == f"{load.links[0].context.span_id:016x}"
    assert type(kernel) is CompiledKernel


def test_a_later_launch_on_the_thread_still_ends_it(triton_telemetry: Telemetry) -> None:
    leave_waiting()
    kernels.scale[(1,)](floats(64), size=64)

    assert only_trip(triton_telemetry).attributes[semconv.DEVICE_LOADED] is True


def in_thread(call: Callable[[], object]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def test_a_load_on_another_thread_ends_it_without_load(triton_telemetry: Telemetry) -> None:
    leave_waiting()
    in_thread(lambda: kernels.scale[(1,)](floats(64), size=64))

    check_ended_without_load(triton_telemetry, only_trip(triton_telemetry))
    assert 1 == len(loads(triton_telemetry))


def test_a_trip_on_another_thread_leaves_it_waiting(triton_telemetry: Telemetry) -> None:
    leave_waiting()
    in_thread(lambda: kernels.shift[(1,)](floats(64), 0.5, size=64))

    assert ["triton_kernels.shift"] == [trip.kernel for trip in triton_telemetry.trips]


def test_the_thread_that_compiled_is_told_whoever_ends_it(triton_telemetry: Telemetry, restart: Any) -> None:
    compiled: list[int] = []

    def compile_only() -> None:
        compiled.append(threading.get_native_id())
        leave_waiting()

    in_thread(compile_only)
    restart()  # the kernel dies here, on this thread
    gc.collect()

    assert compiled == [only_trip(triton_telemetry).attributes["thread.id"]]


def test_it_ends_when_the_kernel_dies(triton_telemetry: Telemetry, restart: Any) -> None:
    leave_waiting()
    restart()
    gc.collect()

    check_ended_without_load(triton_telemetry, only_trip(triton_telemetry))


def test_a_kernel_that_dies_inside_of_telemetry_is_told_of_later(
    triton_telemetry: Telemetry, restart: Any
) -> None:
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

    class Collecting(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            restart()
            gc.collect()

    leave_waiting()
    triton_telemetry.tracer_provider.add_span_processor(Collecting())
    triton_telemetry.tracer_provider.get_tracer("program").start_span("one").end()

    assert [] == triton_telemetry.trips  # an exporter's lock may be held here

    kernels.shift.warmup(floats(64), 0.5, size=64, grid=(1,))

    check_ended_without_load(triton_telemetry, triton_telemetry.trips[0])


def test_it_ends_when_the_instrumentor_is_removed(triton_telemetry: Telemetry) -> None:
    leave_waiting()
    ((kernel,),) = [cache[0].values() for cache in kernels.scale.device_caches.values()]
    TritonInstrumentor().uninstrument()

    check_ended_without_load(triton_telemetry, only_trip(triton_telemetry))
    assert type(kernel) is CompiledKernel


PROGRAM = """
import sys
import triton_kernels as kernels
from telemetry import CollectingSink
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from otel_kernel.instrumentors.triton import TritonInstrumentor
from triton_device import device, floats

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(formatter=lambda span: f"{span.name}\\n")))
TritonInstrumentor().instrument(tracer_provider=provider)

def grid(_meta):
    raise SystemExit(0)

kernels.scale[grid](floats(64), size=64)
"""


def run_program(text: str, store: Path) -> str:
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(tests), str(tests.parent), os.environ.get("PYTHONPATH", ""))),
            "TRITON_CACHE_DIR": str(store),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def test_it_ends_when_the_process_exits(store: Path) -> None:
    assert "compile triton_kernels.scale\n" == run_program(PROGRAM, store)


FORK = (
    PROGRAM.partition("def grid")[0]
    + """
import os

def grid(_meta):
    raise LookupError

try:
    kernels.scale[grid](floats(64), size=64)
except LookupError:
    pass
provider.force_flush()
child = os.fork()
kernels.scale[(1,)](floats(64), size=64)
provider.force_flush()
if child:
    os.waitpid(child, 0)
sys.stdout.flush()
os._exit(0)
"""
)


def test_a_forked_child_leaves_it_to_its_parent(store: Path) -> None:
    lines = run_program(FORK, store).splitlines()

    assert ["compile triton_kernels.scale", "load triton_kernels.scale"] == sorted(lines)
