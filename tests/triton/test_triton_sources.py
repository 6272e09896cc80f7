"""Kernels that are compiled by other ways than a launch, for other targets and from other sources."""

# Triton has no types that say enough.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import concurrent.futures
import contextvars
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import triton
import triton_kernels as kernels
from telemetry import Telemetry
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton_device import HIP, TELLS_OF_LAUNCHES, VERSION, floats

from otel_kernel import pipeline, semconv
from otel_kernel.records import CompilationOutcome, Trip

knobs: Any = import_module("triton.knobs")

_torch = find_spec("torch")
IS_TORCH_REAL = _torch is None or _torch.origin is not None


def scale_source(size: int = 64) -> Any:
    return ASTSource(kernels.scale, {"values": "*fp32", "size": "constexpr"}, {"size": size})


def compile_for(arch: int, source: Any) -> Any:
    return triton.compile(source, target=GPUTarget("cuda", arch, 32))


def only_trip(telemetry: Telemetry) -> Trip:
    (trip,) = telemetry.trips
    return trip


def outcomes(telemetry: Telemetry) -> list[CompilationOutcome | None]:
    return [trip.outcome for trip in telemetry.trips]


@pytest.mark.parametrize("arch", [80, 90, 100])
def test_an_nvidia_target_without_a_device(triton_telemetry: Telemetry, arch: int) -> None:
    pipeline.configure(level="full")
    kernel = compile_for(arch, scale_source())

    trip = only_trip(triton_telemetry)
    assert CompilationOutcome.COMPILED is trip.outcome
    assert f"cuda:{arch}" == trip.attributes[semconv.TARGET]
    assert semconv.DEVICE not in trip.attributes
    assert trip.attributes[semconv.DEVICE_LOADED] is False
    assert isinstance(trip.ir, str)
    assert isinstance(trip.source, str)
    assert "tt.func public @scale" in trip.ir
    assert f".target sm_{arch}" in trip.source
    cubin = kernel.asm["cubin"]
    assert b"\x7fELF" == cubin[:4]
    assert len(cubin) == trip.attributes[semconv.ARTIFACT_SIZE]


@pytest.mark.skipif(VERSION < (3, 5), reason="3.4 wants the linker of ROCm")
def test_an_amd_target_without_a_device(triton_telemetry: Telemetry) -> None:
    pipeline.configure(level="full")
    kernel = triton.compile(scale_source(), target=HIP)

    trip = only_trip(triton_telemetry)
    assert "hip:gfx942" == trip.attributes[semconv.TARGET]
    assert isinstance(trip.source, str)
    assert ".amdgcn_target" in trip.source
    assert "gfx942" in trip.source
    assert b"\x7fELF" == kernel.asm["hsaco"][:4]
    assert {"amdgcn", "hsaco"} <= {
        name.removeprefix(semconv.STAGE) for name in trip.attributes if name.startswith(semconv.STAGE)
    }


@pytest.mark.skipif(VERSION < (3, 5), reason="3.4 wants the linker of ROCm")
@pytest.mark.skipif(
    not IS_TORCH_REAL, reason="a folder of tests passes for PyTorch, which Triton asks about arguments"
)
def test_an_amd_device(triton_telemetry: Telemetry, device: Any) -> None:
    device.target = HIP
    kernels.scale[(1,)](floats(64), size=64)

    trip = triton_telemetry.trips[0]
    assert "hip:gfx942" == trip.attributes[semconv.TARGET]
    assert TELLS_OF_LAUNCHES == trip.attributes[semconv.DEVICE_LOADED]
    if TELLS_OF_LAUNCHES:
        assert "hip:0" == trip.attributes[semconv.DEVICE]


def test_two_targets_are_two_identities(triton_telemetry: Telemetry) -> None:
    compile_for(90, scale_source())
    compile_for(100, scale_source())

    one, two = triton_telemetry.trips
    assert one.attributes[semconv.IDENTITY] != two.attributes[semconv.IDENTITY]
    assert one.key is not None
    assert two.key is not None
    assert one.key.build_id != two.key.build_id  # the backend is part of it


def test_what_is_compiled_ahead_is_loaded_by_a_launch(triton_telemetry: Telemetry) -> None:
    kernel = compile_for(90, scale_source())
    for _ in range(2):
        kernel[(1, 1, 1)](floats(64))

    _, load = triton_telemetry.spans
    assert "load triton_kernels.scale" == load.name
    assert only_trip(triton_telemetry).span_id == f"{load.links[0].context.span_id:016x}"


def test_a_source_that_is_none_is_refused_as_without_us(triton_telemetry: Telemetry) -> None:
    with pytest.raises(AssertionError, match="source must be either AST or a filepath"):
        compile_for(90, 12)

    assert [] == triton_telemetry.trips


@pytest.fixture
def ttir(tmp_path: Path) -> Path:
    """An IR file."""
    path = tmp_path / "some.ttir"
    path.write_text(
        """module {
  tt.func public @from_file(%values: !tt.ptr<f32>) attributes {noinline = false} {
    %one = arith.constant 1.000000e+00 : f32
    tt.store %values, %one : !tt.ptr<f32>
    tt.return
  }
}
"""
    )
    return path


def test_an_ir_file_is_named_after_its_entry(triton_telemetry: Telemetry, ttir: Path) -> None:
    pipeline.configure(level="full")
    for _ in range(2):
        compile_for(90, str(ttir))

    compiled, loaded = triton_telemetry.trips
    assert [CompilationOutcome.COMPILED, CompilationOutcome.LOADED] == outcomes(triton_telemetry)
    assert {"from_file"} == {compiled.kernel, loaded.kernel}
    assert str(ttir) == compiled.attributes[semconv.CODE_FILE_PATH]
    assert ttir.read_text() == compiled.ir
    assert compiled.key == loaded.key
    assert compiled.attributes[semconv.IDENTITY] == loaded.attributes[semconv.IDENTITY]


def test_a_ptx_file_is_named_after_its_entry(triton_telemetry: Telemetry, tmp_path: Path) -> None:
    kernel = compile_for(90, scale_source())
    ptx = tmp_path / "some.ptx"
    ptx.write_text(kernel.asm["ptx"])
    with pytest.raises(AttributeError):  # which no version compiles
        compile_for(90, str(ptx))

    assert ("scale", "AttributeError") == (
        triton_telemetry.trips[1].kernel,
        triton_telemetry.trips[1].error_type,
    )


def test_an_ir_file_that_is_not_there(triton_telemetry: Telemetry, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        compile_for(90, str(tmp_path / "gone.ttir"))

    trip = only_trip(triton_telemetry)
    assert ("gone.ttir", "FileNotFoundError") == (trip.kernel, trip.error_type)


def test_gluon(triton_telemetry: Telemetry, restart: Any) -> None:
    gluon: Any = import_module("triton_gluon_kernels")
    for _ in range(2):
        gluon.fill[(1,)](floats(128), number=2.0)
        gluon.fill.device_caches.clear()

    assert [CompilationOutcome.COMPILED, CompilationOutcome.LOADED] == outcomes(triton_telemetry)
    assert {"triton_gluon_kernels.fill"} == {trip.kernel for trip in triton_telemetry.trips}
    assert TELLS_OF_LAUNCHES == triton_telemetry.trips[0].attributes[semconv.DEVICE_LOADED]


def test_gluon_where_another_listener_took_our_place(triton_telemetry: Telemetry) -> None:
    gluon: Any = import_module("triton_gluon_kernels")
    gluon.fill.device_caches.clear()
    ours = knobs.compilation.listener
    knobs.compilation.listener = None
    for _ in range(2):
        gluon.fill[(1,)](floats(128), number=2.0)
        gluon.fill.device_caches.clear()
    knobs.compilation.listener = ours

    assert [CompilationOutcome.COMPILED, CompilationOutcome.LOADED] == outcomes(triton_telemetry)


@pytest.fixture
def pool() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.mark.skipif(not hasattr(triton, "AsyncCompileMode"), reason="Triton 3.4 has none")
def test_asynchronous_compiles_belong_to_the_span_that_asked(
    triton_telemetry: Telemetry, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    tracer = triton_telemetry.tracer_provider.get_tracer("program")
    with tracer.start_as_current_span("request") as request, triton.AsyncCompileMode(pool):
        kernels.scale.warmup(floats(64), size=64, grid=(1,))
        kernels.shift.warmup(floats(64), 0.5, size=64, grid=(1,))

    compiled = [span for span in triton_telemetry.spans if span.name.startswith("compile ")]
    assert {"compile triton_kernels.scale", "compile triton_kernels.shift"} == {
        span.name for span in compiled
    }
    assert {request.get_span_context().span_id} == {
        span.parent.span_id if span.parent is not None else None for span in compiled
    }
    assert [CompilationOutcome.COMPILED] * 2 == outcomes(triton_telemetry)
    assert {False} == {trip.attributes[semconv.DEVICE_LOADED] for trip in triton_telemetry.trips}
    assert {"cuda:0"} == {trip.attributes[semconv.DEVICE] for trip in triton_telemetry.trips}


@pytest.mark.skipif(not hasattr(triton, "AsyncCompileMode"), reason="Triton 3.4 has none")
def test_a_launch_in_asynchronous_mode_loads_by_a_span_of_its_own(
    triton_telemetry: Telemetry, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    with triton.AsyncCompileMode(pool):
        kernels.scale[(1,)](floats(64), size=64)

    trip = only_trip(triton_telemetry)
    assert trip.attributes[semconv.DEVICE_LOADED] is False
    assert ["compile triton_kernels.scale", "load triton_kernels.scale"] == [
        span.name for span in triton_telemetry.spans
    ]


@pytest.mark.skipif(not hasattr(triton, "AsyncCompileMode"), reason="Triton 3.4 has none")
def test_an_asynchronous_compile_waits_for_no_load(
    triton_telemetry: Telemetry, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    def no_grid(_meta: object) -> tuple[int]:
        raise LookupError

    with triton.AsyncCompileMode(pool), pytest.raises(LookupError):
        kernels.scale[no_grid](floats(64), size=64)

    assert only_trip(triton_telemetry).attributes[semconv.DEVICE_LOADED] is False


@pytest.mark.skipif(not hasattr(triton, "AsyncCompileMode"), reason="Triton 3.4 has none")
def test_an_asynchronous_compile_that_fails(
    triton_telemetry: Telemetry, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    from triton.compiler.errors import CompilationError

    def compile_in_the_pool() -> None:
        with triton.AsyncCompileMode(pool):
            kernels.undefined.warmup(floats(1), grid=(1,))

    with pytest.raises(CompilationError):
        # Below 3.8 a mode that fails is never left, so it gets a context of its own.
        contextvars.copy_context().run(compile_in_the_pool)

    assert "triton.compiler.errors.CompilationError" == only_trip(triton_telemetry).error_type


def test_compiling_always_says_so(
    triton_telemetry: Telemetry, restart: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels.scale[(1,)](floats(64), size=64)
    restart()
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    kernels.scale[(1,)](floats(64), size=64)

    first, again = triton_telemetry.trips
    assert [CompilationOutcome.COMPILED] * 2 == outcomes(triton_telemetry)
    assert first.key == again.key
    assert semconv.REASON not in first.attributes
    assert "TRITON_ALWAYS_COMPILE is set" == again.attributes[semconv.REASON]


def test_a_store_of_binaries_only_has_no_texts(
    triton_telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.configure(level="full")
    monkeypatch.setenv("TRITON_STORE_BINARY_ONLY", "1")
    kernels.scale[(1,)](floats(64), size=64)

    trip = triton_telemetry.trips[0]
    assert CompilationOutcome.COMPILED is trip.outcome
    assert trip.source is None
