"""Beside a monitor in Triton's other single slots, as model servers arm one after their warm-up."""

# Triton has no types that say enough.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
import triton_kernels as kernels
from telemetry import Telemetry
from triton_device import TELLS_OF_LAUNCHES, floats

from otel_kernel import semconv
from otel_kernel.instrumentors.triton import TritonInstrumentor
from otel_kernel.records import CompilationOutcome

knobs: Any = import_module("triton.knobs")
jit: Any = import_module("triton.runtime.jit")

COMPILED, LOADED = CompilationOutcome.COMPILED, CompilationOutcome.LOADED


class Monitor:
    """Sets what vLLM's jit_monitor sets, in the way in which it does: its hook calls the one before it."""

    def __init__(self, mode: str = "warn") -> None:
        self.mode = mode
        self.seen: list[str] = []
        self._guard_serialization()
        knobs.autotuning.print = True
        before: Callable[..., Any] | None = knobs.runtime.jit_post_compile_hook

        def on_compile(**event: Any) -> Any:
            self.seen.append(event["fn"].name.rpartition(".")[2])  # qualified in newer versions
            if self.mode == "error":
                raise RuntimeError("Triton kernel JIT compilation during inference")
            return before(**event) if before is not None else None

        knobs.runtime.jit_post_compile_hook = on_compile

    @staticmethod
    def _guard_serialization() -> None:
        original = jit.serialize_specialization_data

        @functools.wraps(original)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except (TypeError, ValueError):
                return None

        jit.serialize_specialization_data = guarded


class ListeningMonitor(Monitor):
    """One that also takes the listener, to tell a load from a compile; it calls whom it finds there."""

    def __init__(self) -> None:
        super().__init__()
        self.hits: list[bool] = []
        before: Callable[..., Any] | None = knobs.compilation.listener

        def listener(**event: Any) -> None:
            self.hits.append(event["cache_hit"])
            if before is not None:
                before(**event)

        knobs.compilation.listener = listener


@pytest.fixture(autouse=True)
def _slots(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(jit, "serialize_specialization_data", jit.serialize_specialization_data)
    yield
    vars(knobs.compilation).pop("listener", None)
    vars(knobs.runtime).pop("jit_post_compile_hook", None)
    vars(knobs.autotuning).pop("print", None)


def launch() -> None:
    kernels.scale[(1,)](floats(64), size=64)


def check(telemetry: Telemetry) -> None:
    assert [COMPILED, LOADED] == [trip.outcome for trip in telemetry.trips]
    for trip in telemetry.trips:
        assert "runtime" == trip.attributes[semconv.OUTCOME_FROM]
        assert TELLS_OF_LAUNCHES is trip.attributes[semconv.DEVICE_LOADED]
        assert TELLS_OF_LAUNCHES is (semconv.STAGE + "load" in trip.attributes)


@pytest.mark.parametrize("kind", [Monitor, ListeningMonitor])
def test_a_monitor_armed_after_us(triton_telemetry: Telemetry, restart: Any, kind: type[Monitor]) -> None:
    monitor = kind()
    launch()
    restart()
    launch()
    if isinstance(monitor, ListeningMonitor):
        assert [False, True] == monitor.hits
        vars(knobs.compilation).pop("listener")

    assert ["scale"] * 2 == monitor.seen, "it does not tell a load from a compile"
    check(triton_telemetry)


@pytest.mark.parametrize("kind", [Monitor, ListeningMonitor])
def test_a_monitor_armed_before_us(
    telemetry: Telemetry, store: object, device: object, restart: Any, kind: type[Monitor]
) -> None:
    restart()
    monitor = kind()
    hook, listener = knobs.runtime.jit_post_compile_hook, knobs.compilation.listener
    TritonInstrumentor().instrument()
    launch()
    restart()
    launch()
    TritonInstrumentor().uninstrument()

    assert ["scale"] * 2 == monitor.seen
    assert (hook, listener) == (knobs.runtime.jit_post_compile_hook, knobs.compilation.listener)
    check(telemetry)


def test_a_monitor_that_refuses_a_compile_while_serving(triton_telemetry: Telemetry, restart: Any) -> None:
    monitor = Monitor("error")
    with pytest.raises(RuntimeError, match=r"^Triton kernel JIT compilation during inference$"):
        launch()
    monitor.mode = "warn"
    restart()
    launch()
    first, second = triton_telemetry.trips

    # It was compiled and stored, and then the program did not go on to load it.
    assert (COMPILED, None, False) == (
        first.outcome,
        first.error_type,
        first.attributes[semconv.DEVICE_LOADED],
    )
    assert (LOADED, TELLS_OF_LAUNCHES) == (second.outcome, second.attributes[semconv.DEVICE_LOADED])
