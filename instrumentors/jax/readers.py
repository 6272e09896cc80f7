"""How each point of JAX is read."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Generator
from typing import Any

from otel_kernel import semconv
from otel_kernel.instrumentors.jax import keys, store
from otel_kernel.instrumentors.jax.lowering import Lowered, lowered
from otel_kernel.records import AttributeValue, CompilationOutcome
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip, error_type

LAYER = "jax"

CONSTANT_LIMIT = 16
"""Elements of a constant beyond which ir leaves it out; weights in a closure are tens of megabytes."""

SPECIALIZATION_LIMIT = 1024
"""Characters of the arguments' types; a model has thousands of parameters."""

# XLA's errors begin with a status code, which holds no kernel text.
_STATUS = re.compile(r"[A-Z][A-Z_]+(?=: )").match

# An argument whose buffer XLA may take: for a result of the same shape, or for whatever fits.
_DONATED = ("tf.aliasing_output", "jax.buffer_donor")

_TENSOR = re.compile(r"tensor<((?:[0-9?]+x)*)((?:[^<>]|<[^<>]*>)+)>")


def read_compile_or_get_cached(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `compiler.compile_or_get_cached`."""
    if store.is_shared_in_memory(call):
        return
    module = call.argument("computation")
    function = lowered(module)
    trip = yield _begin(module, function)
    if trip.error is None:
        trip.outcome = _outcome(trip)
    else:
        _read_error(trip.error, trip, function)
    _read_place(call, trip)
    _read_key(call, trip)
    if function is not None:
        _read_stages(function, trip)
    trip.set_ir(lambda: _stablehlo(module))
    executable: Any = trip.result
    if executable is not None:
        trip.set_source(lambda: "\n\n".join(hlo.to_string() for hlo in executable.hlo_modules()))


def read_xla_compile(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `compiler.backend_compile_and_load`, and `backend_compile` where that is not."""
    started = time.perf_counter_ns()
    yield
    trip.add_stage("compile", time.perf_counter_ns() - started)
    if call.error is None:
        trip.notes["compiled"] = True


def read_store_lookup(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `compilation_cache.get_executable_and_time`."""
    trip.notes["key"] = call.argument("cache_key")
    started = time.perf_counter_ns()
    yield
    trip.add_stage("store_read", time.perf_counter_ns() - started)
    if isinstance(call.error, OSError):
        trip.notes["read_fault"] = f"reading raised {error_type(call.error)}"
    elif call.error is not None:
        trip.notes["rejected"] = True
        trip.set(semconv.STORE_REJECTED, error_type(call.error))
    elif call.result[0] is not None:
        trip.notes["loaded"] = True
        trip.set(semconv.ORIGINAL_NS, int(call.result[1]) * 1_000_000_000)


def read_key(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `cache_key.get`, of whose keys only one is looked up in the end."""
    started = time.perf_counter_ns()
    yield
    trip.add_stage("key", time.perf_counter_ns() - started)
    if call.error is None:
        options, compression = call.argument("compile_options"), call.argument("compression_algorithm")
        trip.notes[call.result] = keys.Inputs(options, compression)
    else:
        trip.notes["key_fault"] = True


def read_hash_computation(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `cache_key._hash_computation`, which is given a hash that is empty."""
    yield
    trip.notes["module"] = call.argument("hash_obj").copy().hexdigest()


def read_cache_write(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `compiler._cache_write`."""
    trip.notes["compile_seconds"] = call.argument("compile_time_secs")
    trip.notes["host_callbacks"] = bool(call.argument("host_callbacks"))  # a condition up to 0.10 only
    started = time.perf_counter_ns()
    yield
    trip.add_stage("store_write", time.perf_counter_ns() - started)


def read_executable_put(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `compilation_cache.put_executable_and_time`."""
    trip.notes["serialized"] = True
    yield
    if call.error is not None:
        trip.notes["write_fault"] = f"writing raised {error_type(call.error)}"


def read_entry_put(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `LRUCache.put`."""
    # The second parameter is `val` up to 0.9.
    key, value = call.argument("key"), call.argument("value", call.argument("val"))
    trip.notes["size"] = len(value)
    trip.notes["put"] = store.why_not_put(call.instance, key, value, rejected="rejected" in trip.notes)
    yield


def read_entry_get(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `LRUCache.get`."""
    yield
    if call.result is not None:
        trip.notes["size"] = len(call.result)


def read_share(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `compiler._compile_and_share_module`, in which one process compiles and the others wait for it."""
    started = time.perf_counter_ns()
    yield
    if call.error is None and "compiled" not in trip.notes:
        trip.notes["peer"] = True
        trip.add_stage("peer", time.perf_counter_ns() - started)


def _begin(module: Any, function: Lowered | None) -> Begin:
    if function is None:
        return Begin(keys.module_name(module), LAYER)
    attributes: dict[str, AttributeValue] = {}
    if function.function is not None:
        attributes[semconv.CODE_FUNCTION_NAME] = function.function
    if function.file is not None:
        attributes[semconv.CODE_FILE_PATH] = function.file
    if function.line is not None:
        attributes[semconv.CODE_LINE_NUMBER] = function.line
    if function.internal:
        attributes[semconv.INTERNAL] = True
    return Begin(function.kernel, LAYER, attributes)


def _outcome(trip: OpenTrip) -> CompilationOutcome | None:
    if "compiled" in trip.notes:
        return CompilationOutcome.COMPILED
    return CompilationOutcome.LOADED if {"loaded", "peer"} & trip.notes.keys() else None


def _read_error(error: BaseException, trip: OpenTrip, function: Lowered | None) -> None:
    place = f"{function.file}:{function.line}" if function is not None and function.file is not None else ""
    status = _STATUS(str(error))
    trip.say_of_error(" ".join(filter(None, (place, status and status.group()))))


def _read_place(call: Call, trip: OpenTrip) -> None:
    """Read what it was compiled for, and where it was loaded."""
    devices, backend = call.argument("devices"), call.argument("backend")
    target = _target(devices.flat[0], backend)
    trip.set(semconv.TARGET, target)
    trip.set(semconv.BUILD, keys.build(backend))
    trip.set(semconv.SPECIALIZATION, _specialization(call.argument("computation"), devices.size))
    here = [device for device in devices.flat if device.process_index == backend.process_index()]
    if trip.error is None and here:
        more = f"..{here[-1].id} ({len(here)})" if len(here) > 1 else ""
        trip.set(semconv.DEVICE, f"{target.partition(':')[0]}:{here[0].id}{more}")
        trip.set(semconv.DEVICE_LOADED, here[0].platform == "cpu")


def _target(device: Any, backend: Any) -> str:
    if device.platform == "cpu":
        return f"cpu:{platform.machine()}"  # the processor is part of the key, as a number
    capability = getattr(device, "compute_capability", None)
    if capability is None:
        return f"{device.platform}:{device.device_kind}"
    vendor = "rocm" if "rocm" in backend.platform_version.lower() else "cuda"
    return f"{vendor}:{str(capability).replace('.', '')}"


def _specialization(module: Any, partitions: int) -> str:
    main = next(op for op in module.body.operations if op.attributes["sym_name"].value == "main").attributes
    types = _TENSOR.sub(_readable_type, str(main["function_type"]).partition(" -> ")[0])
    if len(types) > SPECIALIZATION_LIMIT:
        types = f"{types[:SPECIALIZATION_LIMIT]}..."
    try:
        of_arguments: Any = main["arg_attrs"]
    except KeyError:  # JAX 0.6 has no `get` here
        of_arguments = ()
    donated = [n for n, marks in enumerate(of_arguments) if any(mark in marks for mark in _DONATED)]
    if donated:
        types += f" donated {donated}"
    return types + (f" on {partitions} devices" if partitions > 1 else "")


def _readable_type(match: re.Match[str]) -> str:
    return f"{match[2]}[{','.join(match[1].split('x')[:-1])}]"


def _read_key(call: Call, trip: OpenTrip) -> None:
    backend, module = call.argument("backend"), call.argument("computation")
    notes: dict[str, Any] = trip.notes
    key, digest = notes.get("key"), notes.get("module")
    if key is None:
        trip.set(semconv.KEY_ABSENT_REASON, store.why_no_key(trip, backend))
    else:
        trip.set_key(
            build=keys.build(backend),
            rest=key,
            entry=key,
            components=keys.components(module, call.argument("devices"), backend, digest, notes.get(key)),
        )
        store.read_store(trip)
    trip.set_code_digest(keys.code_digest(module, digest))


def _read_stages(function: Lowered, trip: OpenTrip) -> None:
    for stage, duration in function.stages.items():
        trip.add_stage(stage, duration)
    function.stages.clear()  # it is the time of one trip; the module may be compiled once more


def _stablehlo(module: Any) -> str:
    return str(module.operation.get_asm(enable_debug_info=False, large_elements_limit=CONSTANT_LIMIT))
