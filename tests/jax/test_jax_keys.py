"""The key of an executable: what it is made of, and what differs when it differs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from telemetry import Telemetry

from otel_kernel.instrumentors.jax import JaxInstrumentor, keys
from otel_kernel.records import KernelCacheKey, Trip

Options = Callable[..., None]

X = np.ones((4, 4), np.float32)
COMPONENT = "compute.kernel.key.component."

pytestmark = pytest.mark.usefixtures("instrumentor")


def scaled(x: Any) -> Any:
    return jnp.sin(x).sum() * 3


def components(trip: Trip) -> dict[str, object]:
    return {
        name.removeprefix(COMPONENT): value
        for name, value in trip.attributes.items()
        if name.startswith(COMPONENT)
    }


def differing(one: Trip, other: Trip) -> set[str]:
    ours, theirs = components(one), components(other)
    return {name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}


def compiled(telemetry: Telemetry, function: Any = scaled, **options: Any) -> Trip:
    """Return the trip of a function that is compiled anew."""
    jax.clear_caches()
    telemetry.trips.clear()
    jax.jit(function).lower(X).compile(options or None)
    (trip,) = telemetry.trips
    return trip


def test_a_key_is_made_of_these_texts(telemetry: Telemetry) -> None:
    trip = compiled(telemetry)
    build, entry = trip.attributes["compute.kernel.build"], trip.attributes["compute.kernel.store.entry"]

    assert KernelCacheKey.of_texts(build=str(build), rest=str(entry)) == trip.key


def test_the_digests_of_a_key_are_what_they_were() -> None:
    key = KernelCacheKey.of_texts(
        build="jaxlib 0.10.2 (990e6a0b8413); cpu; cpu",
        rest="jit_f-d26037614402ad5b3a2bfc832c5e0a4f1ff1759417a9745f093f390ffa7ae1a6",
    )

    assert key.to_json() == {
        "id": "7caef2b8edf55c90e0f1ae2a468dce2f",
        "build_id": "ab8bb27f7c20b542edbf88d31df4f030",
    }


def test_the_build_names_jaxlib_and_the_platform() -> None:
    from jaxlib import version

    text = keys.build(jax.devices()[0].client)

    assert text.startswith(f"jaxlib {version.__version__}")
    assert text.endswith("; cpu; cpu")


def test_the_same_function_has_the_same_key_and_components(telemetry: Telemetry) -> None:
    one, other = compiled(telemetry), compiled(telemetry)

    assert one.key == other.key
    assert components(one) != {}
    assert components(one) == components(other)


def test_the_module_is_the_digest_of_stablehlo_without_locations(telemetry: Telemetry) -> None:
    from jax._src import cache_key

    trip = compiled(telemetry)
    jax.clear_caches()
    module: Any = jax.jit(scaled).lower(X).compiler_ir()
    canonicalize: Any = cache_key._canonicalize_ir

    assert hashlib.sha256(canonicalize(module, False)).hexdigest() == components(trip)["module"]


def test_another_body_is_another_module_only(telemetry: Telemetry) -> None:
    def changed(x: Any) -> Any:
        return jnp.cos(x).sum() * 3

    changed.__name__ = "scaled"
    one, other = compiled(telemetry), compiled(telemetry, changed)

    assert one.kernel == other.kernel
    assert {"module"} == differing(one, other)
    assert one.attributes["compute.kernel.identity"] != other.attributes["compute.kernel.identity"]


def test_a_moved_body_is_the_same_module(telemetry: Telemetry) -> None:
    def moved(x: Any) -> Any:
        # The line differs, and StableHLO without locations does not.
        return jnp.sin(x).sum() * 3

    moved.__name__ = "scaled"
    one, other = compiled(telemetry), compiled(telemetry, moved)

    assert one.key == other.key
    assert one.attributes["compute.kernel.identity"] == other.attributes["compute.kernel.identity"]
    assert one.attributes["code.line.number"] != other.attributes["code.line.number"]


def test_identity_holds_no_locations_where_the_key_does(options: Options, telemetry: Telemetry) -> None:
    one = compiled(telemetry)
    options(compilation_cache_include_metadata_in_key=True)
    other = compiled(telemetry)

    assert one.key != other.key
    assert {"module"} == differing(one, other)
    assert one.attributes["compute.kernel.identity"] == other.attributes["compute.kernel.identity"]


def test_an_option_of_the_compiler_is_a_component(telemetry: Telemetry) -> None:
    one = compiled(telemetry)
    other = compiled(telemetry, xla_cpu_enable_fast_math=True)

    assert one.key != other.key
    assert {"options"} == differing(one, other)
    assert components(other)["options"] == "xla_cpu_enable_fast_math=True"
    assert one.attributes["compute.kernel.identity"] == other.attributes["compute.kernel.identity"]


def test_flags_of_xla_are_a_component(telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    one = compiled(telemetry)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true --xla_dump_to=/nowhere")
    other = compiled(telemetry)

    assert one.key != other.key
    assert {"xla_flags"} == differing(one, other)
    assert components(other)["xla_flags"] == "--xla_cpu_enable_fast_math=true"


def test_another_cache_folder_is_told_from_another_option(
    store: Path, options: Options, telemetry: Telemetry
) -> None:
    from jax._src import compilation_cache

    one = compiled(telemetry)
    options(compilation_cache_dir=str(store.parent / "moved"))
    compilation_cache.reset_cache()
    other = compiled(telemetry)

    # Up to which version of JAX the folder is part of the key, the component tells.
    assert (one.key != other.key) == ({"cache_folders"} == differing(one, other))
    assert {"cache_folders"} >= differing(one, other)


def test_another_compression_is_a_component(telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    from jax._src import compilation_cache

    one = compiled(telemetry)
    present = vars(compilation_cache)["zstandard"]
    monkeypatch.setattr(compilation_cache, "zstandard", object() if present is None else None)
    other = compiled(telemetry)

    assert one.key != other.key
    assert {"compression"} == differing(one, other)


def test_a_hook_of_the_program_is_a_component(telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    from jax._src import cache_key

    one = compiled(telemetry)
    monkeypatch.setattr(cache_key, "custom_hook", lambda: "release 7")
    other = compiled(telemetry)

    assert one.key != other.key
    assert {"custom_hook"} == differing(one, other)
    assert components(other)["custom_hook"] == "release 7"


def test_a_key_that_cannot_be_made_is_bypassed(
    instrumentor: JaxInstrumentor, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jax._src import cache_key

    # The exception of JAX's that its caller handles.
    with pytest.raises(RuntimeError) as caught:
        jax.jit(scaled).lower(X).compile({"xla_no_such_option": "1"})
    telemetry.trips.clear()

    def fail(*_: object) -> None:
        raise caught.value

    monkeypatch.setattr(cache_key, "_hash_xla_flags", fail)
    trip = compiled(telemetry)

    assert trip.key is None
    assert trip.attributes["compute.kernel.key.absent_reason"] == "bypassed"
    assert isinstance(trip.attributes["compute.kernel.identity"], str)
