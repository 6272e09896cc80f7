"""How a graph's way through Inductor is read: compiled, or out of one of the stores."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextvars import ContextVar
from typing import Any

from otel_kernel import semconv
from otel_kernel.instrumentors.torch import cpp_kernels, frames, keys, triton_kernels
from otel_kernel.instrumentors.torch.aot_inductor import read_ahead_of_time
from otel_kernel.instrumentors.torch.kernels import Kernels, kernels_of
from otel_kernel.records import Abandoned, CompilationOutcome
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip, error_type

LAYER = "torch.inductor.graph"

_FORWARD, _BACKWARD = "forward", "backward"

_held: ContextVar[list[OpenTrip] | None] = ContextVar("otel_kernel_torch_loaded", default=None)
"""Graphs loaded for an entry of AOTAutograd's store that may still turn out to be of no use."""


def read_compile(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `_compile_fx_inner`: lookup in the FX graph cache, and on a miss the compiler."""
    from torch._inductor.virtualized import V

    if V.aot_compilation:
        yield from read_ahead_of_time(call)
        return
    module = call.argument("gm")
    if _is_empty(module):
        return  # nothing to compile, and nothing is
    frame = frames.current_frame()
    trip = yield _begin(frame, type(module).__name__, is_backward=bool(call.argument("is_backward")))
    kernels = kernels_of(trip)
    cpp_kernels.release(trip)
    graph: Any = trip.result
    lookup: Any = trip.notes.get("lookup", {})
    state = lookup.get("cache_state", "disabled")
    if trip.error is None:
        if state == "hit":
            trip.outcome = CompilationOutcome.LOADED
        elif _is_rekeyed(trip, lookup, kernels):
            trip.outcome = CompilationOutcome.REKEYED
        else:
            trip.outcome = CompilationOutcome.COMPILED
        trip.set(semconv.DEVICE_LOADED, True)
        _read_graph(trip, graph)
    elif frames.gives_up(trip.error, frame):
        trip.abandon(Abandoned.RETRY)
    else:
        inner = getattr(trip.error, "inner_exception", None)
        if isinstance(inner, BaseException):
            trip.say_of_error(triton_kernels.worker_error(inner) or error_type(inner))
    kernels.tell(trip)
    _read_lookup(trip, lookup)
    if trip.outcome is not CompilationOutcome.LOADED:
        trip.set(semconv.REASON, _why(frame, lookup))
    if state in ("hit", "miss"):
        key = lookup["key"] if "key" in lookup else getattr(graph, "_fx_graph_cache_key", None)
        _read_key(trip, key, lookup.get("components", ()), getattr(graph, "guards_expr", None))
        _read_store(trip)
    elif frame is not None and frame.autograd_key is not None and _is_bundled():
        _read_bundled_key(trip, frame.autograd_key)
    else:
        trip.set(semconv.KEY_ABSENT_REASON, "bypassed" if state == "bypass" else "disabled")


def read_load(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `FxGraphCacheLoadable.load`: a graph that an entry of AOTAutograd's store names."""
    loadable = call.instance
    trip = yield _begin(frames.current_frame(), "graph", is_backward=bool(loadable._is_backward()))
    kernels = kernels_of(trip)
    cpp_kernels.release(trip)
    lookup: Any = trip.notes.get("lookup", {})
    kernels.tell(trip)
    _read_lookup(trip, lookup)
    key, lines = loadable.fx_graph_cache_info
    _read_key(trip, key, lines, loadable.fx_graph_guard_expr)
    if trip.error is not None:
        frames.tell_of_failed_entry(trip.error)
        _give_up_unless_strict(trip)
        return
    trip.outcome = CompilationOutcome.LOADED
    trip.set(semconv.DEVICE_LOADED, True)
    _read_graph(trip, trip.result)
    held = _held.get()
    if held is not None:
        trip.held = True
        held.append(trip)


def read_bundled_load(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `BundledOutputCodeLoadable.post_compile`: a graph that lies in an entry of AOTAutograd's store."""
    frame = frames.current_frame()
    is_backward = "Backward" in type(call.instance).__name__
    trip = yield _begin(frame, "graph", is_backward=is_backward)
    kernels = kernels_of(trip)
    cpp_kernels.release(trip)
    kernels.tell(trip)
    if frame is not None and frame.autograd_key is not None:
        _read_bundled_key(trip, frame.autograd_key)
    else:
        trip.set(semconv.KEY_ABSENT_REASON, "bypassed")
    if trip.error is not None:
        _give_up_unless_strict(trip)
        return
    trip.outcome = CompilationOutcome.LOADED
    trip.set(semconv.DEVICE_LOADED, True)
    _read_graph(trip, call.argument("result"))


def read_entry(call: Call) -> Generator[None, None, None]:
    """Read `wrap_post_compile`, which loads what an entry of AOTAutograd's store names, or gives it up."""
    held: list[OpenTrip] = []
    token = _held.set(held)
    yield
    _held.reset(token)
    for trip in held:
        if call.error is not None:  # the forward was there and the backward was not
            trip.abandon(Abandoned.RETRY)
        trip.finish()


def read_key(_call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `FxGraphCache.prepare_key`: the time of a key, and why there is none."""
    started = time.perf_counter_ns()
    yield
    trip.add_stage("key", time.perf_counter_ns() - started)
    if _call.error is None and _call.result[0] is None:
        trip.notes["lookup"] = _call.result[1]


def read_lookup(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `FxGraphCache.load_with_key`: what the FX graph cache has."""
    entries = _entries(call.argument("key")) if call.argument("local") else 0
    started = time.perf_counter_ns()
    yield
    trip.add_stage("lookup", time.perf_counter_ns() - started)
    if call.error is None:
        trip.notes["lookup"] = {**call.result[1], "entries": entries}
    elif entries:
        trip.set(semconv.STORE_REJECTED, error_type(call.error))


def read_record_result(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `FxGraphCache._record_result`: whether a store beyond this host has answered."""
    trip.notes["remote"] = bool(call.argument("remote_hit"))
    yield


def read_store(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `FxGraphCache._write_to_local_cache`, whose exceptions Inductor only logs."""
    yield
    trip.notes["stored"] = call.error is None
    if call.error is not None:
        trip.set(semconv.STORE_REASON, error_type(call.error))
    else:
        trip.set(semconv.ARTIFACT_SIZE, len(call.argument("content")))


def read_lower(_call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `GraphLowering.run`: the time from graph to loops."""
    yield from _stage(trip, "lower")


def read_codegen(_call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `GraphLowering.codegen`: the time from loops to source."""
    yield from _stage(trip, "codegen")


def read_wait(_call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `AsyncCompile.wait`: the time until the last kernel was built and loaded."""
    yield from _stage(trip, "kernels")


def _stage(trip: OpenTrip, name: str) -> Generator[None, None, None]:
    started = time.perf_counter_ns()
    yield
    trip.add_stage(name, time.perf_counter_ns() - started)


def _begin(frame: frames.Frame | None, fallback: str, *, is_backward: bool) -> Begin:
    name = frame.name if frame is not None else fallback
    attributes = dict(frame.code) if frame is not None else {}
    number = frames.compile_id()
    if number is not None:
        attributes[semconv.COMPILE_ID] = number
    return Begin(f"{name}[{_BACKWARD if is_backward else _FORWARD}]", LAYER, attributes)


def _is_empty(module: Any) -> bool:
    from torch._dynamo.utils import count_calls

    return not _is_bundled() and count_calls(module.graph) == 0


def _is_bundled() -> bool:
    import torch._functorch.config as settings

    return bool(settings.bundled_autograd_cache)


def _is_rekeyed(trip: OpenTrip, lookup: Any, kernels: Kernels) -> bool:
    """Whether the graph was lowered to kernels that the store held already, all of them.

    Not where an entry lay under the graph's own key: a damaged one, or one for other sizes.
    """
    is_new = lookup.get("cache_status_detailed") == "full_miss" and not lookup.get("entries")
    return is_new and kernels.count > 0 and kernels.compiled == 0 and trip.error is None


def _give_up_unless_strict(trip: OpenTrip) -> None:
    import torch._functorch.config as settings

    if not settings.strict_autograd_cache:
        trip.abandon(Abandoned.RETRY)  # AOTAutograd goes on as if it had no such entry


def _read_graph(trip: OpenTrip, graph: Any) -> None:
    text = getattr(graph, "inductor_post_grad_graph_str", None)
    if text:
        trip.set(semconv.SPECIALIZATION, keys.specialization(text) or None)
        trip.set_code_digest(keys.graph_digest(text))
        trip.set_ir(text)
    source = getattr(graph, "source_code", None)
    if source:
        trip.set_source(source)
    devices = sorted(getattr(graph, "device_types", None) or ())
    if devices:
        trip.set(semconv.TARGET, ",".join(devices))
    indices = sorted(getattr(graph, "device_idxs", None) or ())
    if len(indices) == 1 and len(devices) == 1 and devices != ["cpu"]:
        trip.set(semconv.DEVICE, f"{devices[0]}:{indices[0]}")


def _read_lookup(trip: OpenTrip, lookup: Any) -> None:
    state = lookup.get("cache_state", "disabled")
    if trip.error is None or lookup:
        is_guarded = lookup.get("cache_status_detailed") == "guard_miss"
        trip.set(semconv.STORE_LOOKUP, "guard_miss" if is_guarded else state)
    if _is_damaged(lookup):
        trip.set(semconv.STORE_REJECTED, "no entry under this key could be read")
    saved = lookup.get("time_saved_ns")
    if isinstance(saved, int) and state == "hit":
        trip.set(semconv.ORIGINAL_NS, saved)


def _is_damaged(lookup: Any) -> bool:
    return lookup.get("cache_status_detailed") == "full_miss" and bool(lookup.get("entries"))


def _why(frame: frames.Frame | None, lookup: Any) -> str | None:
    """Return why a graph was compiled: what Dynamo says, and what the FX graph cache says."""
    state = lookup.get("cache_state")
    reasons = [frame.reason] if frame is not None and frame.reason is not None else []
    if state == "bypass":
        reasons.append(str(lookup.get("cache_bypass_reason", "bypassed")).partition("\n")[0][:200])
    elif lookup.get("cache_status_detailed") == "guard_miss":
        reasons.append("the entries of the FX graph cache under this key hold for other sizes")
    elif _is_damaged(lookup):
        reasons.append("no entry of the FX graph cache under this key could be read")
    elif state == "miss":
        reasons.append("the FX graph cache has no entry under this key")
    return "; ".join(reasons) or None


def _read_key(trip: OpenTrip, key: str | None, lines: Any, guards: str | None) -> None:
    if key is None:
        return
    build = keys.graph_build()
    trip.set(semconv.BUILD, build.partition("\n")[0])
    trip.set_key(
        build=build,
        rest=f"{key}\n{guards or ''}",
        components=keys.graph_components(lines, guards),
        entry=keys.graph_entry(key, guards),
    )
    trip.set(semconv.STORE_KIND, f"torch.inductor.fxgraph{'.remote' if trip.notes.get('remote') else ''}")
    trip.set(semconv.STORE_LOCATION, _store())


def _read_bundled_key(trip: OpenTrip, key: str) -> None:
    part = trip.kernel.rpartition("[")[2].rstrip("]")
    build = keys.graph_build()
    trip.set(semconv.BUILD, build.partition("\n")[0])
    trip.set_key(
        build=build,
        rest=f"{key}\n{part}",
        components={"config_changed": keys.changed_config()},
        entry=f"{key}:{part}",
    )
    trip.set(semconv.STORE_KIND, "torch.aot_autograd")
    trip.set(semconv.STORE_LOCATION, _store("aotautograd"))


def _read_store(trip: OpenTrip) -> None:
    if trip.outcome is CompilationOutcome.LOADED:
        return
    stored = trip.notes.get("stored") is True
    trip.set(semconv.STORE_STORED, stored)
    if stored:
        return
    if trip.error is not None:
        trip.set(semconv.STORE_REASON, f"compiling raised {error_type(trip.error)}")
    elif "stored" not in trip.notes:
        trip.set(semconv.STORE_REASON, "the graph cannot be pickled, or only a remote store is on")


def _store(name: str = "fxgraph") -> str:
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    return os.path.join(cache_dir(), name)  # noqa: PTH118 - torch's own text


def _entries(key: str) -> int:
    from torch._inductor.codecache import FxGraphCache

    try:
        names = os.listdir(FxGraphCache._get_tmp_dir_for_key(key))  # noqa: PTH208 - the path is torch's text
    except OSError:
        return 0
    return sum(not name.startswith(".") for name in names)
