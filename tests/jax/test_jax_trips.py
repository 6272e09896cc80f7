"""What is a trip of JAX's, what it is called, and what it says of the function."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas
from telemetry import Telemetry

from otel_kernel import pipeline
from otel_kernel.instrumentors.jax import JaxInstrumentor
from otel_kernel.records import CompilationOutcome, Trip

X = np.ones((4, 4), np.float32)
STAGE = "compute.kernel.stage."


def scaled(x: Any) -> Any:
    return jnp.sin(x).sum() * 3


def only(telemetry: Telemetry) -> Trip:
    """Return the one trip that is not of JAX's library."""
    (trip,) = [trip for trip in telemetry.trips if "compute.kernel.internal" not in trip.attributes]
    return trip


# The first version's events do not say what was traced.
BEFORE = {"lower"} if jax.__version_info__ < (0, 6, 1) else {"trace", "lower"}


def stages(trip: Trip) -> set[str]:
    return {name.removeprefix(STAGE) for name in trip.attributes if name.startswith(STAGE)}


def test_a_hit_in_memory_emits_nothing(instrumentor: JaxInstrumentor, telemetry: Telemetry) -> None:
    jitted = jax.jit(scaled)
    results = {float(jitted(X)) for _ in range(100)}
    again = jax.jit(scaled)  # another object, for which JAX finds the executable in memory
    results.add(float(again(X)))

    assert len(results) == 1
    assert [trip.kernel for trip in telemetry.trips] == ["jit(scaled)"]
    assert [span.name for span in telemetry.spans] == ["compile jit(scaled)"]


def test_a_new_shape_is_another_trip_of_the_kernel(
    instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    jitted = jax.jit(scaled)
    jitted(X)
    jitted(X[:2])
    first, second = telemetry.trips

    assert first.kernel == second.kernel
    assert first.key is not None
    assert second.key is not None
    assert first.key.id != second.key.id
    assert first.key.build_id == second.key.build_id
    assert first.attributes["compute.kernel.specialization"] == "(f32[4,4])"
    assert second.attributes["compute.kernel.specialization"] == "(f32[2,4])"
    assert first.attributes["compute.kernel.identity"] != second.attributes["compute.kernel.identity"]


class Model:
    def step(self, x: Any) -> Any:
        return x + 1


def _scale(factor: float, x: Any) -> Any:
    return factor * x


@pytest.mark.parametrize(
    ("kernel", "call"),
    [
        ("jit(scaled)", lambda: jax.jit(scaled)(X)),
        ("jit(scaled)", lambda: jax.jit(jax.grad(scaled))(X)),
        ("jit(scaled)", lambda: jax.jit(jax.value_and_grad(scaled))(X)),
        ("jit(scaled)", lambda: jax.jit(jax.vmap(scaled))(X)),
        ("jit(scaled)", lambda: jax.vmap(jax.jit(scaled))(X)),
        ("jit(scaled)", lambda: jax.jit(jax.checkpoint(scaled))(X)),
        ("jit(<lambda>)", lambda: jax.jit(lambda x: x - 1)(X)),
        ("jit(_scale)", lambda: jax.jit(functools.partial(_scale, 2.0))(X)),
        ("jit(step)", lambda: jax.jit(Model().step)(X)),
        ("jit(scan(<lambda>))", lambda: jax.lax.scan(lambda carry, row: (carry + row, row), X[0], X)),
    ],
)
def test_a_kernel_has_the_name_of_its_function(
    kernel: str, call: Callable[[], object], instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    call()
    trip = only(telemetry)

    assert kernel == trip.kernel
    assert __file__ == trip.attributes["code.file.path"]
    assert str(trip.attributes["code.function.name"]) in kernel
    assert isinstance(trip.attributes["code.line.number"], int)


def test_a_gradient_of_a_jitted_function_is_named_after_it(
    instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    jax.grad(jax.jit(scaled))(X)

    names = {trip.kernel for trip in telemetry.trips if "compute.kernel.internal" not in trip.attributes}

    assert {"jit(scaled)"} == names


def test_functions_of_the_library_are_internal(instrumentor: JaxInstrumentor, telemetry: Telemetry) -> None:
    x = jax.device_put(X)
    jnp.add(x, 1)
    jnp.linalg.norm(x)
    jax.random.normal(jax.random.key(0), (3,))
    x.at[0].set(2)
    jnp.searchsorted(x[0], 3)  # has a loop of the library's own

    assert len(telemetry.trips) > 5
    assert {True} == {trip.attributes.get("compute.kernel.internal") for trip in telemetry.trips}
    assert "jit(add)" in {trip.kernel for trip in telemetry.trips}


@pytest.mark.filterwarnings("ignore:.*pmap.*:DeprecationWarning")
@pytest.mark.parametrize(
    "call",
    [
        lambda: jax.lax.map(lambda row: row + 1, X),
        lambda: jax.lax.cond(True, lambda x: x + 1, lambda x: x, X),
        lambda: jax.pmap(lambda x: x * 2)(X[None]),
    ],
)
def test_a_function_of_the_library_around_one_of_the_program_is_not_internal(
    call: Callable[[], object], instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    call()

    assert isinstance(only(telemetry).kernel, str)


def test_an_inner_function_is_no_trip_of_its_own(instrumentor: JaxInstrumentor, telemetry: Telemetry) -> None:
    inner = jax.jit(scaled)

    def outer(x: Any) -> Any:
        return inner(x) + inner(x * 2)

    jax.jit(outer)(X)

    assert [trip.kernel for trip in telemetry.trips] == ["jit(outer)"]


def test_compiling_ahead_of_time_is_a_trip_and_calling_is_none(
    instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    lowered = jax.jit(scaled).lower(X)

    assert telemetry.trips == []

    compiled = lowered.compile()
    lowered.compile()
    compiled(X)

    assert [trip.kernel for trip in telemetry.trips] == ["jit(scaled)"]
    assert {*BEFORE, "key", "store_read", "compile", "store_write"} == stages(telemetry.trips[0])


def test_threads_that_compile_ahead_of_time_keep_their_functions_apart(
    instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    def functions(n: int) -> Any:
        def function(x: Any) -> Any:
            return x * n

        function.__name__ = f"function_{n}"
        return jax.jit(function).lower(X)

    lowered = [functions(n) for n in range(4)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda each: each.compile(), lowered))

    assert {f"jit(function_{n})" for n in range(4)} == {trip.kernel for trip in telemetry.trips}
    assert len({trip.seq for trip in telemetry.trips}) == 4
    for trip in telemetry.trips:
        assert {*BEFORE, "compile"} <= stages(trip)


def test_what_was_lowered_before_has_the_name_of_its_module(
    instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    instrumentor.uninstrument()
    lowered = jax.jit(scaled).lower(X)
    instrumentor.instrument()
    lowered.compile()
    (trip,) = telemetry.trips

    assert trip.kernel == "jit_scaled"
    assert CompilationOutcome.COMPILED is trip.outcome
    assert "code.file.path" not in trip.attributes
    assert "lower" not in stages(trip)


def test_the_time_of_tracing_belongs_to_one_trip(instrumentor: JaxInstrumentor, telemetry: Telemetry) -> None:
    lowered = jax.jit(scaled).lower(X)
    lowered.compile()
    lowered.compile({"xla_cpu_enable_fast_math": True})
    first, second = telemetry.trips

    assert "lower" in stages(first)
    assert {"key", "store_read", "compile", "store_write"} == stages(second)


def test_the_time_of_tracing_is_not_that_of_another_function(
    instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    def other(x: Any) -> Any:
        return x + 1

    traced = jax.jit(scaled).trace(X)
    jax.jit(other).trace(X)
    traced.lower().compile()
    trip = only(telemetry)

    assert trip.kernel == "jit(scaled)"
    assert "trace" not in stages(trip)
    assert "lower" in stages(trip)


def test_donated_arguments_are_part_of_the_specialization(
    instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    def moved(x: Any, y: Any) -> Any:
        return x + y

    jax.jit(moved, donate_argnums=1)(X, jax.device_put(X))
    trip = only(telemetry)

    assert trip.attributes["compute.kernel.specialization"] == "(f32[4,4], f32[4,4]) donated [1]"


def test_a_specialization_of_many_arguments_is_cut(
    instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    jax.jit(lambda parameters: sum(each.sum() for each in parameters))([X] * 200)
    specialization = only(telemetry).attributes["compute.kernel.specialization"]

    assert isinstance(specialization, str)
    assert specialization.startswith("(f32[4,4], ")
    assert specialization.endswith("...")
    assert len(specialization) == 1027


def test_what_it_was_compiled_for(instrumentor: JaxInstrumentor, telemetry: Telemetry) -> None:
    from jaxlib import version

    jax.jit(scaled)(X)
    attributes = only(telemetry).attributes

    assert attributes["compute.kernel.device"] == "cpu:0"
    assert attributes["compute.kernel.device_loaded"] is True
    assert str(attributes["compute.kernel.target"]).startswith("cpu:")
    assert str(attributes["compute.kernel.build"]).startswith(f"jaxlib {version.__version__}")


def test_texts_travel_at_level_full_only(instrumentor: JaxInstrumentor, telemetry: Telemetry) -> None:
    jax.jit(scaled)(X)
    pipeline.configure(level="full")
    jax.clear_caches()
    jax.jit(scaled)(X)
    basic, full = telemetry.trips

    assert (basic.ir, basic.source) == (None, None)
    assert isinstance(full.ir, str)
    assert "stablehlo.sine" in full.ir
    assert "loc(" not in full.ir
    assert isinstance(full.source, str)
    assert "HloModule jit_scaled" in full.source


def test_large_constants_are_left_out_of_texts(instrumentor: JaxInstrumentor, telemetry: Telemetry) -> None:
    pipeline.configure(level="full")
    weights = jnp.asarray(np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32))
    telemetry.trips.clear()
    jax.jit(lambda x: x @ weights)(np.ones((1, 300), np.float32))
    trip = only(telemetry)

    assert isinstance(trip.ir, str)
    assert isinstance(trip.source, str)
    assert len(trip.ir) < 5_000
    assert len(trip.source) < 20_000


def test_exported_functions_are_named_after_what_was_exported(
    instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    from jax import export

    data = export.export(jax.jit(scaled))(X).serialize()

    assert telemetry.trips == []

    restored = export.deserialize(data)
    restored.call(X)
    jax.jit(restored.call)(X)

    assert [trip.kernel for trip in telemetry.trips] == ["jit(call_exported(scaled))", "jit(call(scaled))"]
    assert {False} == {"compute.kernel.internal" in trip.attributes for trip in telemetry.trips}


def _add_one(x_ref: Any, out_ref: Any) -> None:
    out_ref[...] = x_ref[...] + 1


def _pallas(x: Any, **options: Any) -> Any:
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pallas.pallas_call(_add_one, out_shape=shape, **options)(x)


def test_a_pallas_kernel_is_part_of_the_function_around_it(
    instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    def caller(x: Any) -> Any:
        return _pallas(x, interpret=True)

    result = jax.jit(caller)(X)

    assert np.asarray(result)[0, 0] == 2
    assert [trip.kernel for trip in telemetry.trips] == ["jit(caller)"]


def test_an_eager_pallas_kernel_is_named_with_its_function(
    instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    _pallas(X, interpret=True)
    trip = only(telemetry)

    assert trip.kernel == "jit(wrapped(_add_one))"
    assert trip.attributes["code.function.name"] == "_add_one"


def test_a_pallas_kernel_that_cannot_be_lowered_is_no_trip(
    instrumentor: JaxInstrumentor, telemetry: Telemetry
) -> None:
    with pytest.raises(ValueError, match="interpret"):
        jax.jit(_pallas)(X)

    assert telemetry.trips == []


def _a_gpu_to_lower_for() -> AbstractContextManager[Any]:
    """Pretend that there is one, where Pallas asks for its kind: from 0.11 on."""
    sharding: Any = jax.sharding
    if jax.__version_info__ < (0, 11):
        return nullcontext()
    device = sharding.AbstractDevice("NVIDIA H100", 1, "cuda")
    mesh = sharding.AbstractMesh((1,), ("x",), abstract_device=device)
    found: AbstractContextManager[Any] = sharding.use_abstract_mesh(mesh)
    return found


def test_lowering_for_triton_is_no_trip(instrumentor: JaxInstrumentor, telemetry: Telemetry) -> None:
    triton: Any = pytest.importorskip("jax.experimental.pallas.triton")
    parameters = getattr(triton, "CompilerParams", None) or triton.TritonCompilerParams

    with warnings.catch_warnings(), _a_gpu_to_lower_for():
        warnings.simplefilter("ignore")
        traced = jax.jit(functools.partial(_pallas, compiler_params=parameters())).trace(X)
        module = traced.lower(lowering_platforms=("cuda",)).as_text()

    assert "xla.gpu.triton" in module
    assert telemetry.trips == []


def test_a_function_over_several_devices_says_so(program: Callable[..., Callable[[], list[Trip]]]) -> None:
    (trip,) = program("sharded.py", XLA_FLAGS="--xla_force_host_platform_device_count=4")()

    assert trip.kernel == "jit(sharded)"
    assert trip.attributes["compute.kernel.specialization"] == "(f32[8,4]) on 4 devices"
    assert trip.attributes["compute.kernel.device"] == "cpu:0..3 (4)"
    assert trip.attributes["compute.kernel.key.component.devices"] == "4 x cpu"
