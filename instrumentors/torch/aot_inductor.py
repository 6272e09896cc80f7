"""How AOTInductor is read: a graph compiled into a package, and a package that is loaded."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

from otel_kernel import semconv
from otel_kernel.instrumentors.torch import frames, keys
from otel_kernel.records import CompilationOutcome
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip, error_type

LAYER = "torch.aot_inductor"


def read_ahead_of_time(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `_compile_fx_inner` where it compiles ahead of time: there is no store to look into."""
    frame = frames.current_frame()
    name = frame.name if frame is not None else _model_name()
    trip = yield Begin(name, LAYER, dict(frame.code) if frame is not None else {})
    trip.set(semconv.KEY_ABSENT_REASON, "unsupported")
    trip.set(semconv.BUILD, keys.graph_build().partition("\n")[0])
    if trip.error is None:
        trip.outcome = CompilationOutcome.COMPILED
        trip.set(semconv.DEVICE_LOADED, False)
        return
    inner = getattr(trip.error, "inner_exception", None)
    if isinstance(inner, BaseException):
        trip.say_of_error(error_type(inner))


def read_sources(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `AotCodeCompiler.compile`: the source, and the graph that it was made of."""
    if trip.layer == LAYER:
        trip.set_source(f"{call.argument('wrapper_code')}\n{call.argument('kernel_code')}")
        devices = sorted(getattr(call.argument("graph"), "device_types", None) or ())
        if devices:
            trip.set(semconv.TARGET, ",".join(devices))
    yield


def read_package(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `load_package`: a package is opened, unpacked and loaded on its device."""
    path = call.argument("path")
    is_path = isinstance(path, (str, Path))
    name = Path(path).name.partition(".")[0] if is_path else "package"
    trip = yield Begin(str(name), LAYER)
    trip.set(semconv.KEY_ABSENT_REASON, "unsupported")
    trip.set(semconv.STORE_KIND, "torch.package")
    if is_path:
        trip.set(semconv.STORE_LOCATION, str(path))
    if trip.error is not None:
        return
    trip.outcome = CompilationOutcome.LOADED
    trip.set(semconv.DEVICE_LOADED, True)
    if is_path:
        trip.set(semconv.ARTIFACT_SIZE, Path(path).stat().st_size)
    loaded: Any = trip.result
    metadata = loaded.loader.get_metadata()
    trip.set(semconv.TARGET, metadata.get("AOTI_DEVICE_KEY"))
    trip.set(
        semconv.SPECIALIZATION,
        ", ".join(f"{name}={value}" for name, value in sorted(metadata.items())),
    )


def _model_name() -> str:
    """Return what AOTInductor calls a model: an exported program has no name of its own."""
    import torch._inductor.config as settings

    return str(settings.aot_inductor.model_name_for_generated_files or "aoti_model")
