"""JAX on a GPU: what differs from the CPU, where all the rest is tested."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from telemetry import Telemetry

from otel_kernel import pipeline
from otel_kernel.records import CompilationOutcome, Trip

if "cuda" not in os.environ.get("JAX_PLATFORMS", ""):
    pytest.skip("JAX_PLATFORMS does not ask for a GPU", allow_module_level=True)

import jax
import jax.numpy as jnp
import numpy as np

X = np.ones((64, 64), np.float32)


@pytest.fixture(autouse=True)
def _instrumented(telemetry: Telemetry, tmp_path: Path) -> Iterator[None]:
    """Instrument JAX at level full, with an empty memory and an empty store that takes everything."""
    from jax._src import compilation_cache

    from otel_kernel.instrumentors.jax import JaxInstrumentor

    options = {
        "jax_compilation_cache_dir": str(tmp_path / "store"),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(jax.config, name) for name in options}
    for name, value in options.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    jax.clear_caches()
    pipeline.configure(level="full")
    made = JaxInstrumentor()
    made.instrument()
    yield
    made.uninstrument()
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def scaled(x: Any) -> Any:
    return jnp.sin(x) @ x.T * 3


def compiled_and_loaded(telemetry: Telemetry, function: Any) -> tuple[Trip, Trip]:
    """Return two trips of a function, before the second of which JAX has forgotten what it had in memory."""
    results: list[Any] = []
    for _ in range(2):
        jax.clear_caches()
        results.append(np.asarray(jax.jit(function)(X)))
    compiled, loaded = telemetry.trips

    assert CompilationOutcome.COMPILED is compiled.outcome
    assert CompilationOutcome.LOADED is loaded.outcome
    assert compiled.key == loaded.key
    assert (results[0] == results[1]).all()

    return compiled, loaded


def attribute(trip: Trip, name: str) -> Any:
    return trip.attributes.get(f"compute.kernel.{name}")


def test_a_trip_says_which_gpu(telemetry: Telemetry) -> None:
    compiled, loaded = compiled_and_loaded(telemetry, scaled)
    capability = str(jax.devices()[0].compute_capability).replace(".", "")

    for trip in (compiled, loaded):
        assert f"cuda:{capability}" == attribute(trip, "target")
        assert "cuda:0" == attribute(trip, "device")
        assert attribute(trip, "device_loaded") is False
        assert "; gpu; " in attribute(trip, "build")
        assert jax.devices()[0].device_kind in attribute(trip, "key.component.devices")
    assert attribute(compiled, "identity") == attribute(loaded, "identity")


def test_texts_of_a_gpu(telemetry: Telemetry) -> None:
    compiled, loaded = compiled_and_loaded(telemetry, scaled)

    assert "stablehlo.sine" in str(compiled.ir)
    assert loaded.ir is None
    for trip in (compiled, loaded):
        assert "HloModule jit_scaled" in str(trip.source)


def add_one(x_ref: Any, out_ref: Any) -> None:
    out_ref[...] = x_ref[...] + 1


# JAX 0.11.2 says so of Pallas's default on this GPU.
@pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated:DeprecationWarning")
def test_a_pallas_kernel_is_compiled_in_the_trip_around_it(telemetry: Telemetry) -> None:
    from jax.experimental import pallas

    def caller(x: Any) -> Any:
        return pallas.pallas_call(add_one, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    compiled, _ = compiled_and_loaded(telemetry, caller)

    assert "jit(caller)" == compiled.kernel
    assert "add_one" in str(compiled.ir)
    assert "triton" in str(compiled.ir) or "mosaic_gpu" in str(compiled.ir)


def test_a_moved_store_keeps_its_keys(telemetry: Telemetry, tmp_path: Path) -> None:
    from jax._src import compilation_cache

    jax.jit(scaled)(X)
    (tmp_path / "store").rename(tmp_path / "moved")
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "moved"))
    compilation_cache.reset_cache()
    jax.clear_caches()
    jax.jit(scaled)(X)
    here, moved = telemetry.trips
    # Where the folder is part of the key, the component of that name says so.
    is_part = attribute(here, "key.component.cache_folders") is not None

    assert is_part == (here.key != moved.key)
    assert is_part == (CompilationOutcome.COMPILED is moved.outcome)


def test_a_failure_of_a_gpu(telemetry: Telemetry) -> None:
    def failing(x: Any) -> Any:
        return jax.ffi.ffi_call("otk_no_such_target", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    with pytest.raises(RuntimeError, match="otk_no_such_target"):
        jax.jit(failing)(X)
    (trip,) = telemetry.trips

    assert "failed" == trip.state
    assert "otk_no_such_target" in str(trip.ir)
    assert attribute(trip, "device_loaded") is None


def test_operations_of_the_library_are_internal(telemetry: Telemetry) -> None:
    x = jax.device_put(X)
    jnp.linalg.norm(jnp.cumsum(x) + 1)

    assert [] != telemetry.trips
    assert {True} == {attribute(trip, "internal") for trip in telemetry.trips}
