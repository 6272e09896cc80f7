"""The program goes on as it would without us."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas
from telemetry import Telemetry
from written_trips import write_recording

import otel_kernel
from otel_kernel.instrumentors.jax import JaxInstrumentor, events
from otel_kernel.report.opening import opened_recording
from otel_kernel.report.summary import summarize

X = np.ones((4, 4), np.float32)
OURS = str(Path(otel_kernel.__file__).parent)


def scaled(x: Any) -> Any:
    return jnp.sin(x).sum() * 3


def _add_one(x_ref: Any, out_ref: Any) -> None:
    out_ref[...] = jnp.tanh(x_ref[...]) + 1


def traced_while_lowering(x: Any) -> Any:
    """Hold operations whose functions JAX traces only while it lowers, below our wrapper."""
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    y = pallas.pallas_call(_add_one, out_shape=shape, interpret=True)(x)
    return jnp.cumsum(jnp.sort(y)), jnp.linalg.qr(x), jax.random.normal(jax.random.key(0), (3,))


def test_the_module_that_jax_compiles_is_the_same(
    instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    modules: list[str] = []
    for before in (lambda: None, instrumentor.uninstrument):
        before()
        jax.clear_caches()
        lowered: Any = jax.jit(traced_while_lowering).lower(X)
        modules.append(lowered.compiler_ir().operation.get_asm(enable_debug_info=True))
        modules.append(lowered.compile().as_text())
    with_us, compiled_with_us, without, compiled_without = modules

    assert [trip.kernel for trip in telemetry.trips] == ["jit(traced_while_lowering)"]
    assert __file__ in with_us
    assert OURS not in with_us
    assert without == with_us
    assert compiled_without == compiled_with_us


def failing(x: Any) -> Any:
    return jax.ffi.ffi_call("otk_no_such_target", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def test_a_failure_is_the_programs_own(instrumentor: JaxInstrumentor, telemetry: Telemetry) -> None:
    with pytest.raises(RuntimeError, match="otk_no_such_target") as caught:
        jax.jit(failing)(X)
    (trip,) = telemetry.trips
    (span,) = telemetry.spans
    kind = type(caught.value)

    assert trip.kernel == "jit(failing)"
    assert trip.state == "failed"
    assert f"{kind.__module__}.{kind.__qualname__}" == trip.error_type
    assert trip.message is not None
    assert trip.message.startswith(f"{trip.error_type} at {__file__}:")
    assert trip.message.endswith(" NOT_FOUND")
    assert "otk_no_such_target" not in repr(span.to_json())
    # As JAX shows it to users, who want to see their own frames.
    assert [
        frame.filename for frame in traceback.extract_tb(caught.tb) if frame.filename.startswith(OURS)
    ] == []


def test_a_failure_of_tracing_is_no_trip(instrumentor: JaxInstrumentor, telemetry: Telemetry) -> None:
    def undefined(x: Any) -> Any:
        return x + otk_undefined  # type: ignore[name-defined] # noqa: F821 - that is what fails

    with pytest.raises(NameError, match="otk_undefined"):
        jax.jit(undefined)(X)

    assert telemetry.trips == []


def _listeners() -> list[Any]:
    from jax._src import monitoring

    return list(monitoring._event_time_span_listeners)


def test_uninstrumenting_leaves_nothing(telemetry: Telemetry) -> None:
    instrumentor = JaxInstrumentor()
    listeners = _listeners()
    originals = {point: _present(point) for point in instrumentor.points()}
    instrumentor.instrument()
    wrapped = [point for point, original in originals.items() if _present(point) is not original]

    assert len(originals) == len(wrapped)
    assert len(_listeners()) - len(listeners) == 1

    instrumentor.uninstrument()

    assert listeners == _listeners()
    for point, original in originals.items():
        assert original is _present(point)

    jax.clear_caches()
    jax.jit(scaled)(X)

    assert telemetry.trips == []


def _present(point: Any) -> Any:
    import sys

    holder: Any = sys.modules[point.module]
    *path, name = point.name.split(".")
    for part in path:
        holder = getattr(holder, part)
    return vars(holder)[name]


def test_listeners_that_somebody_clears_are_not_missed(
    instrumentor: JaxInstrumentor, telemetry: Telemetry, own_listeners: None
) -> None:
    jax.monitoring.clear_event_listeners()
    jax.jit(scaled)(X)
    (trip,) = telemetry.trips

    assert trip.kernel == "jit(scaled)"
    assert "compute.kernel.stage.lower" not in trip.attributes

    instrumentor.uninstrument()  # asks JAX to forget a listener that it does not know


@pytest.fixture
def own_listeners() -> Iterator[None]:
    """Put back what a test clears."""
    from jax._src import monitoring

    names = [name for name in vars(monitoring) if name.startswith("_") and name.endswith("_listeners")]
    kept = {name: list(getattr(monitoring, name)) for name in names}
    yield
    for name, listeners in kept.items():
        setattr(monitoring, name, [each for each in listeners if each is not events._listener])


@pytest.mark.faults_logged
def test_a_listener_that_fails_does_not_reach_the_program(
    instrumentor: JaxInstrumentor,
    telemetry: Telemetry,
    caplog: pytest.LogCaptureFixture,
) -> None:
    nothing: Any = None
    jax.monitoring.record_event_time_span("/jax/core/compile/jaxpr_trace_duration", nothing, 1.0)
    jax.jit(scaled)(X)

    assert [trip.kernel for trip in telemetry.trips] == ["jit(scaled)"]
    assert [record.getMessage().partition(" failed in otel-kernel")[0] for record in caplog.records] == [
        "the listener to JAX's events"
    ]


def test_level_off_reads_nothing(instrumentor: JaxInstrumentor, telemetry: Telemetry) -> None:
    instrumentor.instrument(level="off")
    jax.jit(scaled)(X)

    assert telemetry.trips == []
    assert telemetry.spans == []


def test_modules_do_not_outlive_jax(instrumentor: JaxInstrumentor, telemetry: Telemetry) -> None:
    import gc

    from otel_kernel.instrumentors.jax import lowering

    gc.collect()
    before = len(lowering._lowered)
    lowered: Any = jax.jit(scaled).lower(X)

    assert before + 1 == len(lowering._lowered)

    lowered.compile()
    del lowered
    jax.clear_caches()
    gc.collect()

    assert len(lowering._lowered) <= before


def test_a_launch_calls_no_more_python(instrumentor: JaxInstrumentor, telemetry: Telemetry) -> None:
    jitted = jax.jit(scaled)
    jitted(X)
    with_us = _calls(lambda: jitted(X))
    instrumentor.uninstrument()
    without = _calls(lambda: jitted(X))

    assert without == with_us


def _calls(call: Callable[[], object]) -> list[str]:
    import sys

    calls: list[str] = []

    def note(frame: Any, event: str, _argument: object) -> None:
        if event == "call":
            calls.append(
                frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name
            )

    sys.setprofile(note)
    try:
        for _ in range(100):
            call()
    finally:
        sys.setprofile(None)
    return calls


def test_a_report_folds_the_operations_that_the_program_runs_eagerly(
    instrumentor: JaxInstrumentor, telemetry: Telemetry, tmp_path: Path
) -> None:
    x = jax.device_put(X)
    jnp.linalg.norm(jnp.cumsum(x) + 1)
    jax.jit(scaled)(X)
    with opened_recording(write_recording(tmp_path / "r.db", telemetry.trips)) as connection:
        (layer,) = summarize(connection).layers

    assert [line.kernel for line in layer.kernels] == ["jit(scaled)"]
    assert layer.internal is not None
    assert 2 < layer.internal.kernels <= layer.internal.counts.compiled
