"""How `torch.cuda._compile_kernel` is read: CUDA source of the program's own, compiled by NVRTC."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator

from otel_kernel import semconv
from otel_kernel.instrumentors.torch import keys
from otel_kernel.records import CompilationOutcome
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip

LAYER = "torch.nvrtc"


def read_compile(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `_compile_kernel`, which compiles and loads at every call, and keeps nothing."""
    trip = yield Begin(str(call.argument("kernel_name")), LAYER)
    source = str(call.argument("kernel_source"))
    trip.set_source(source)
    trip.set_code_digest(hashlib.sha256(source.encode(errors="replace")).hexdigest())
    trip.set(semconv.KEY_ABSENT_REASON, "unsupported")
    trip.set(semconv.BUILD, keys.build_name(f"CUDA {keys.torch.version.cuda}"))
    options = call.argument("nvcc_options") or ()
    trip.set(semconv.SPECIALIZATION, " ".join(map(str, options)) or None)
    if trip.error is None:
        trip.outcome = CompilationOutcome.COMPILED
        trip.set(semconv.DEVICE_LOADED, True)
        trip.set(semconv.DEVICE, f"cuda:{keys.torch.cuda.current_device()}")


def read_nvrtc(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `_nvrtc_compile`: the time of the compiler, the architecture and the size of what it made."""
    started = time.perf_counter_ns()
    yield
    if trip.layer != LAYER:
        return
    trip.add_stage("nvrtc", time.perf_counter_ns() - started)
    capability = call.argument("compute_capability")
    if capability is not None:
        trip.set(semconv.TARGET, f"cuda:{capability}")
    if call.error is None:
        trip.set(semconv.ARTIFACT_SIZE, len(call.result[0]))
