"""The compile function has three names, and every function that was launched holds it too."""

# Triton has no types that say enough.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import pickle
import sys
from types import ModuleType
from typing import Any

import pytest
import triton
import triton.compiler
import triton.compiler.compiler
import triton_kernels as kernels
from telemetry import Telemetry
from triton.compiler import ASTSource
from triton_device import CUDA, floats

from otel_kernel.instrumentors.triton import TritonInstrumentor


def names_of_compile() -> list[Any]:
    return [triton.compile, triton.compiler.compile, triton.compiler.compiler.compile]


def source_of_scale() -> Any:
    return ASTSource(kernels.scale, {"values": "*fp32", "size": "constexpr"}, {"size": 64})


@pytest.fixture
def original(store: object, restart: Any) -> Any:
    """The compile function as Triton has it."""
    restart()
    (compile_function,) = set(names_of_compile())
    return compile_function


def test_a_function_that_was_launched_before_us_is_seen(telemetry: Telemetry, original: Any) -> None:
    kernels.scale[(1,)](floats(64), size=64)
    assert original is kernels.scale.compile

    TritonInstrumentor().instrument()
    kernels.scale[(1,)](floats(32), size=32)
    kernels.shift[(1,)](floats(32), 1.5, size=32)
    (ours,) = set(names_of_compile())
    assert ours is kernels.scale.compile is kernels.shift.compile

    TritonInstrumentor().uninstrument()
    kernels.scale[(1,)](floats(16), size=16)
    assert [original] * 5 == [*names_of_compile(), kernels.scale.compile, kernels.shift.compile]
    assert ["triton_kernels.scale", "triton_kernels.shift"] == [trip.kernel for trip in telemetry.trips]


def test_a_name_that_a_program_has_imported_before_us_is_seen(
    telemetry: Telemetry, original: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program: Any = ModuleType("program")  # has said: from triton.compiler import compile as make
    program.make = triton.compiler.compile
    monkeypatch.setitem(sys.modules, "program", program)

    TritonInstrumentor().instrument()
    program.make(source_of_scale(), target=CUDA)
    assert triton.compile is program.make
    TritonInstrumentor().uninstrument()
    program.make(source_of_scale(), target=CUDA)

    assert original is program.make
    assert ["triton_kernels.scale"] == [trip.kernel for trip in telemetry.trips]


def test_a_module_that_imports_itself_late_is_left_alone(
    original: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lazy(ModuleType):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"{name} is asked for")

    monkeypatch.setitem(sys.modules, "lazy", Lazy("lazy"))
    TritonInstrumentor().instrument()
    TritonInstrumentor().uninstrument()

    assert {original} == set(names_of_compile())


def test_two_functions_of_one_name_are_both_seen(telemetry: Telemetry, original: Any) -> None:
    one, two = triton.jit(kernels.scale.fn), triton.jit(kernels.scale.fn)
    one[(1,)](floats(64), size=64)
    two[(1,)](floats(64), size=64)

    TritonInstrumentor().instrument()
    try:
        assert original not in (one.compile, two.compile)
    finally:
        TritonInstrumentor().uninstrument()

    assert original is one.compile is two.compile


def test_our_function_is_pickled_as_triton_s(triton_telemetry: Telemetry) -> None:
    assert triton.compile is pickle.loads(pickle.dumps(triton.compile))
    assert b"otel_kernel" not in pickle.dumps(triton.compile)


def test_another_tool_s_name_is_wrapped_as_it_is(
    telemetry: Telemetry, original: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that has replaced one name by a call of another: one trip a compile all the same."""
    calls: list[object] = []

    def theirs(source: object, *args: Any, **kwargs: Any) -> Any:
        calls.append(source)
        return triton.compiler.compiler.compile(source, *args, **kwargs)

    monkeypatch.setattr(triton.compiler, "compile", theirs)
    TritonInstrumentor().instrument()
    kernels.scale[(1,)](floats(64), size=64)
    TritonInstrumentor().uninstrument()

    assert theirs is triton.compiler.compile
    assert 1 == len(calls)
    assert 1 == len(telemetry.trips)
