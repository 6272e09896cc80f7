"""Readers of acme that set whatever a reader can set."""

from __future__ import annotations

from collections.abc import Generator

from otel_kernel import semconv
from otel_kernel.records import CompilationOutcome
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip

BUILD = "acme 1.2; sm_90"


def read_all(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `Compiler.compile`; the options of the call are the key's components, `ir` and `source` its texts."""
    name = call.argument("name")
    if name in call.instance.kernels:
        return
    trip = yield Begin(
        kernel=f"acme.{name}",
        layer="acme",
        attributes={
            semconv.CODE_FUNCTION_NAME: name,
            semconv.CODE_FILE_PATH: "/srv/shop.py",
            semconv.CODE_LINE_NUMBER: 12,
            semconv.TARGET: "cuda:90",
        },
    )
    if trip.error is None:
        trip.outcome = CompilationOutcome.LOADED if "found" in trip.notes else CompilationOutcome.COMPILED
    else:
        trip.say_of_error("shop.py:12 A042")
    options: dict[str, str] = call.kwargs
    trip.set_key(
        build=BUILD, rest=name, components={"flags": options.get("flags", "none")}, entry=f"{name}.bin"
    )
    trip.set_ir(options.get("ir", f"ir of {name}"))
    trip.set_source(lambda: options.get("source", f"source of {name}"))
    trip.set_code_digest("0" * 64)
    trip.add_stage("lower", 40)
    trip.add_stage("link", 2)
    trip.set(semconv.BUILD, BUILD)
    trip.set(semconv.STORE_KIND, "acme.memory")
    trip.set(semconv.STORE_LOCATION, "/tmp/acme")
    trip.set(semconv.SPECIALIZATION, "(float64,)")
    trip.set(semconv.DEVICE, "cuda:0")
    trip.set(semconv.DEVICE_LOADED, True)
    trip.set(semconv.ARTIFACT_SIZE, 100)
    trip.set(semconv.REASON, "first call")
    if trip.outcome is CompilationOutcome.COMPILED:
        trip.set(semconv.STORE_STORED, True)
