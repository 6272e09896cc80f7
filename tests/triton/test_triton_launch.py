"""Kernels that a launch compiles and loads."""

# Triton has no types that say enough.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import copy
import enum
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import triton_kernels as kernels
from telemetry import Telemetry
from triton.compiler import CompiledKernel
from triton_device import TELLS_OF_LAUNCHES, floats

from otel_kernel import semconv
from otel_kernel.records import CompilationOutcome, KernelCacheKey, TextDigest

NEEDS_LAUNCH = pytest.mark.skipif(not TELLS_OF_LAUNCHES, reason="3.4 does not tell that a launch goes on")


@NEEDS_LAUNCH
def test_a_launch_is_one_trip_with_its_load(triton_telemetry: Telemetry, device: Any) -> None:
    seen: list[type] = []
    device.while_loading = lambda: seen.append(kernel_in_memory().__class__)

    def kernel_in_memory() -> Any:
        (cached,) = next(iter(kernels.scale.device_caches.values()))[0].values()
        return cached

    kernels.scale[(1,)](floats(64), size=64)
    kernel = kernels.scale[(1,)](floats(64), size=64)

    (trip,) = triton_telemetry.trips
    (span,) = triton_telemetry.spans
    assert CompilationOutcome.COMPILED is trip.outcome
    assert "compile triton_kernels.scale" == span.name
    assert trip.attributes[semconv.DEVICE_LOADED] is True
    assert "cuda:0" == trip.attributes[semconv.DEVICE]
    assert "cuda:90" == trip.attributes[semconv.TARGET]
    assert (1, 2) == (device.loads, device.launches)
    # The class was Triton's own before the load, let alone the launch.
    assert [CompiledKernel] == seen
    assert type(kernel) is CompiledKernel


@NEEDS_LAUNCH
def test_the_duration_is_compile_and_load_without_what_is_in_between(
    triton_telemetry: Telemetry, device: Any
) -> None:
    import time

    def grid(_meta: object) -> tuple[int]:
        time.sleep(0.2)  # Triton asks for the grid after the compile and before the load
        return (1,)

    device.while_loading = lambda: time.sleep(0.05)
    started = time.perf_counter_ns()
    kernels.scale[grid](floats(64), size=64)
    whole = time.perf_counter_ns() - started

    (trip,) = triton_telemetry.trips
    (span,) = triton_telemetry.spans
    load = trip.attributes[semconv.STAGE + "load"]
    assert isinstance(load, int)
    assert trip.duration_ns is not None
    assert 50_000_000 <= load < trip.duration_ns <= whole - 200_000_000
    assert span.start_time is not None
    assert span.end_time == span.start_time + trip.duration_ns


@NEEDS_LAUNCH
def test_code_between_compile_and_load_is_outside_of_the_span(
    triton_telemetry: Telemetry, device: Any
) -> None:
    tracer = triton_telemetry.tracer_provider.get_tracer("program")

    def grid(_meta: object) -> tuple[int]:
        tracer.start_span("between").end()
        return (1,)

    device.while_loading = lambda: tracer.start_span("loading").end()
    kernels.scale[grid](floats(64), size=64)

    between, loading, trip = triton_telemetry.spans
    assert between.parent is None
    assert loading.parent is not None
    assert trip.context is not None
    assert trip.context.span_id == loading.parent.span_id


def test_a_second_process_loads_what_the_first_has_stored(triton_telemetry: Telemetry, restart: Any) -> None:
    kernels.scale[(1,)](floats(64), size=64)
    restart()
    kernels.scale[(1,)](floats(64), size=64)

    compiled, loaded = triton_telemetry.trips
    assert (CompilationOutcome.COMPILED, CompilationOutcome.LOADED) == (compiled.outcome, loaded.outcome)
    assert compiled.key == loaded.key
    for name in (semconv.IDENTITY, semconv.SPECIALIZATION, semconv.BUILD, semconv.STORE_ENTRY):
        assert compiled.attributes[name] == loaded.attributes[name]
    assert compiled.attributes[semconv.STORE_STORED] is True
    assert semconv.STORE_STORED not in loaded.attributes
    assert isinstance(compiled.ir, TextDigest)
    assert loaded.ir is None
    assert compiled.source == loaded.source


def test_two_specializations_are_two_trips_of_one_kernel(triton_telemetry: Telemetry) -> None:
    kernels.scale[(1,)](floats(64), size=64)
    kernels.scale[(1,)](floats(32), size=32)

    one, two = triton_telemetry.trips
    assert one.kernel == two.kernel == "triton_kernels.scale"
    assert one.key is not None
    assert two.key is not None
    assert one.key.build_id == two.key.build_id
    assert one.key.id != two.key.id
    assert one.attributes[semconv.IDENTITY] != two.attributes[semconv.IDENTITY]
    differ = {
        name
        for name in one.attributes
        if name.startswith(semconv.KEY_COMPONENT) and one.attributes[name] != two.attributes[name]
    }
    assert {semconv.KEY_COMPONENT + "constants"} == differ


def test_two_devices_compile_once_and_load_once(triton_telemetry: Telemetry, device: Any) -> None:
    kernels.scale[(1,)](floats(64), size=64)
    device.current = 1
    kernels.scale[(1,)](floats(64), size=64)

    one, two = triton_telemetry.trips
    assert (CompilationOutcome.COMPILED, CompilationOutcome.LOADED) == (one.outcome, two.outcome)
    assert one.key == two.key
    assert 2 == device.loads
    if TELLS_OF_LAUNCHES:
        assert ("cuda:0", "cuda:1") == (one.attributes[semconv.DEVICE], two.attributes[semconv.DEVICE])
    else:
        loads = [span for span in triton_telemetry.spans if span.name.startswith("load")]
        assert ["cuda:0", "cuda:1"] == [(span.attributes or {})[semconv.DEVICE] for span in loads]


def test_a_warmed_up_kernel_is_loaded_by_a_span_of_its_own(triton_telemetry: Telemetry) -> None:
    kernels.scale.warmup(floats(64), size=64, grid=(1,))

    (trip,) = triton_telemetry.trips
    (compiled,) = triton_telemetry.spans
    assert trip.attributes[semconv.DEVICE_LOADED] is False

    kernels.scale[(1,)](floats(64), size=64)
    kernels.scale[(1,)](floats(64), size=64)

    assert [trip] == triton_telemetry.trips
    _, load = triton_telemetry.spans
    assert compiled.context is not None
    assert load.attributes is not None
    assert "load triton_kernels.scale" == load.name
    assert [compiled.context] == [link.context for link in load.links]
    assert "load" == load.attributes[semconv.ROLE]
    assert "cuda:0" == load.attributes[semconv.DEVICE]
    assert (trip.session.id, trip.seq) == (
        load.attributes[semconv.SESSION_ID],
        load.attributes[semconv.SESSION_SEQ],
    )
    assert semconv.OUTCOME not in load.attributes


def test_a_failed_compilation_says_where_and_no_more(triton_telemetry: Telemetry) -> None:
    from triton.compiler.errors import CompilationError

    with pytest.raises(CompilationError, match="nowhere"):
        kernels.undefined[(1,)](floats(1))

    (trip,) = triton_telemetry.trips
    lines = Path(kernels.__file__).read_text().splitlines()
    line = next(number for number, text in enumerate(lines, start=1) if "def undefined" in text) + 3
    assert "triton.compiler.errors.CompilationError" == trip.error_type
    assert f"{trip.error_type} at {kernels.__file__}:{line}" == trip.message
    assert "failed" == trip.state
    assert trip.attributes[semconv.STORE_STORED] is False
    assert TELLS_OF_LAUNCHES == (trip.key is not None)  # in 3.4 the key is made out of our sight


def test_what_ptxas_refuses_is_a_failed_trip(
    triton_telemetry: Telemetry, capfd: pytest.CaptureFixture[str]
) -> None:
    from triton.runtime.errors import PTXASError

    with pytest.raises(PTXASError):
        kernels.unassembled[(1,)](floats(1))

    (trip,) = triton_telemetry.trips
    assert ("triton.runtime.errors.PTXASError", "triton.runtime.errors.PTXASError") == (
        trip.error_type,
        trip.message,
    )
    capfd.readouterr()  # Triton prints all of the PTX


class Mode(enum.Enum):
    FAST = 1


def test_a_kernel_with_an_enum_among_its_constants_runs(triton_telemetry: Telemetry, device: Any) -> None:
    kernels.modal[(1,)](floats(1), mode=Mode.FAST)

    (trip,) = triton_telemetry.trips
    assert 1 == device.launches
    assert "mode=Mode.FAST" in str(trip.attributes[semconv.SPECIALIZATION])


def test_a_kernel_among_the_constants_is_named(triton_telemetry: Telemetry) -> None:
    kernels.apply[(1,)](floats(1), function=kernels.twice)

    assert "function=triton_kernels._twice" in str(
        triton_telemetry.trips[0].attributes[semconv.SPECIALIZATION]
    )


def test_hashing_the_key_is_a_stage_of_its_own(triton_telemetry: Telemetry) -> None:
    readers: Any = import_module("otel_kernel.instrumentors.triton.readers")
    readers.triton_key.cache_clear()  # it takes much of a second, as in a new process
    kernels.scale.warmup(floats(64), size=64, grid=(1,))

    (trip,) = triton_telemetry.trips
    stages = {
        name.removeprefix(semconv.STAGE): value
        for name, value in trip.attributes.items()
        if name.startswith(semconv.STAGE) and isinstance(value, int)
    }
    expected = {"ir", "ttir", "ttgir", "llir", "ptx", "cubin", "store"}
    assert expected | ({"key"} if TELLS_OF_LAUNCHES else set()) == stages.keys()
    assert 0 <= min(stages.values())
    assert trip.duration_ns is not None
    assert sum(stages.values()) <= trip.duration_ns + 10_000_000  # Triton's clock ticks otherwise than ours


def test_the_key_is_made_of_what_triton_makes_its_own_of(triton_telemetry: Telemetry) -> None:
    kernel = kernels.scale.warmup(floats(64), size=64, grid=(1,))

    (trip,) = triton_telemetry.trips
    parts = [str(trip.attributes[semconv.KEY_COMPONENT + name]) for name in ("options", "environment")]
    assert kernel.hash == trip.attributes[semconv.STORE_ENTRY]
    assert KernelCacheKey.of_texts(build="", rest="\n".join((kernel.src.hash(), *parts))).id == (
        trip.key.id if trip.key is not None else None
    )
    assert "triton.file" == trip.attributes[semconv.STORE_KIND]


def test_a_kernel_that_waits_can_be_copied_and_pickled(triton_telemetry: Telemetry) -> None:
    import pickle

    kernel = kernels.scale.warmup(floats(64), size=64, grid=(1,))

    # Its metadata has a class that pickle cannot find, with us as without us.
    vars(kernel).pop("metadata")
    for name in ("src", "asm", "metadata_group", "packed_metadata"):
        vars(kernel).pop(name, None)
    for each in (copy.copy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert type(each) is CompiledKernel
        assert vars(kernel) == vars(each)
    assert isinstance(kernel, CompiledKernel)
    assert repr(kernel).startswith("<triton.compiler.compiler.CompiledKernel object at")
    assert not [name for name in vars(kernel) if "otel" in name]
