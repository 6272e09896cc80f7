"""How a kernel of Triton's that Inductor has written is read.

It is compiled in this process until Inductor's pool of processes is ready, then in a worker, and of a stored
graph it lies in a bundle beside it. In each case one call in this process ends with the kernel on its device.
What Triton's own compiler does meanwhile is part of that trip.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import weakref
from collections.abc import Generator, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from otel_kernel import semconv
from otel_kernel.beside import start_parent
from otel_kernel.instrumentors.torch import keys
from otel_kernel.instrumentors.torch.frames import RUNTIME
from otel_kernel.instrumentors.torch.kernels import kernels_of
from otel_kernel.instrumentors.torch.workers import compiler_in_key, is_worker, take_job
from otel_kernel.records import Abandoned, CompilationOutcome, escape
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip, current

LAYER = "torch.inductor.triton_kernel"

ABSORBED = frozenset({"triton"})

_CLOCK_STEP_NS = 10_000_000
"""By how much the clock of a file system may lag behind."""

_BUNDLED = "bundle"
_HERE = "parent"
_IN_WORKER = "worker"

_FUSION = "triton_"
"""What Inductor calls every kernel that it compiles to see whether a fusion is worth while."""

_in_round: ContextVar[bool] = ContextVar("otel_kernel_torch_round", default=False)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the generated code says of a kernel."""

    name: str
    source: str


_asked: ContextVar[_Asked | None] = ContextVar("otel_kernel_torch_triton_kernel", default=None)

_bundled: weakref.WeakKeyDictionary[Any, _Asked] = weakref.WeakKeyDictionary()
"""Kernels out of a bundle, until they are asked for."""


def read_request(call: Call) -> Generator[None, None, None]:
    """Read `AsyncCompile.triton`, which knows name and source: called once or twice a kernel."""
    asked = _Asked(str(call.argument("kernel_name")), str(call.argument("source_code")))
    token = _asked.set(asked)
    yield
    _asked.reset(token)
    if hasattr(call.result, "static_autotuner"):
        _bundled[call.result] = asked


def read_answer(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `LambdaFuture.result` of a kernel that a worker compiles."""
    future: Any = getattr(call.instance, "future", None)
    job = take_job(future)
    if job is None:
        return  # a kernel of C++, or one that was asked for before
    called, started = time.time_ns(), time.perf_counter_ns()
    begin = Begin(job.name, LAYER, started_ns=job.submitted_ns, absorbs=ABSORBED)
    if job.name == _FUSION:
        with tuning_round("a fusion"):
            trip = yield begin
        trip.abandon(Abandoned.TUNING)
    else:
        trip = yield begin
    took = time.perf_counter_ns() - started
    done = job.done_ns if job.done_ns is not None else called
    # Without the time in which the answer lay there and nobody asked for it.
    trip.last((done - job.submitted_ns) + took - max(0, done - called))
    _read_source(trip, job.source)
    if trip.error is not None:
        trip.say_of_error(f"worker: {worker_error(trip.error)}")
        return
    worker_ns = int(future.result()[1]) * 1000
    trip.add_stage("worker", worker_ns)
    trip.add_stage("queue", done - job.submitted_ns - worker_ns)
    autotuner: Any = trip.notes.get("autotuner", trip.result)
    hashes: Any = trip.notes.get("hashes") or _hashes(autotuner)
    word: Any = trip.notes.get("word")
    if word is not None:
        has_compiled = not all(word["hits"])
        trip.set(semconv.OUTCOME_FROM, "worker")
    else:
        has_compiled = _is_written_since(trip, autotuner, hashes)
        trip.set(semconv.OUTCOME_FROM, "inferred")
    has_compiled = has_compiled or _has_compiled_here(trip)
    _read_kernel(trip, autotuner, hashes, has_compiled=has_compiled, made_in=_IN_WORKER)


def read_bundled(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `StaticAutotunerFuture.result`: a kernel out of the bundle of a stored graph."""
    autotuner = call.instance.static_autotuner
    if autotuner.launchers:
        return  # in memory
    asked = _bundled.pop(call.instance, None) or _asked.get()
    trip = yield Begin(asked.name if asked is not None else name_of(autotuner), LAYER, absorbs=ABSORBED)
    _read_source(trip, asked.source if asked is not None else None)
    if trip.error is None:
        hashes = _hashes(autotuner)
        _read_kernel(trip, autotuner, hashes, has_compiled=_has_compiled_here(trip), made_in=_BUNDLED)


def read_precompile(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `CachingAutotuner.precompile`, through which every kernel comes onto its device."""
    autotuner = call.instance
    if call.argument("warm_cache_only") or is_worker():
        return
    around = current()
    if around is not None and around.layer == LAYER:
        around.notes["autotuner"] = autotuner
        around.notes["hashes"] = _hashes(autotuner)  # without what the launcher adds for this device
        return
    is_candidate = (
        call.argument("reload_kernel") is None and call.argument("static_triton_bundle_key") is None
    )
    asked = _asked.get() if not is_candidate else None
    name = asked.name if asked is not None else name_of(autotuner)
    if autotuner.launchers:  # in memory
        if around is not None and not is_candidate:
            kernels_of(around).names.append(name)
        return
    begin = Begin(name, LAYER, absorbs=ABSORBED)
    if is_candidate and not _in_round.get():
        with tuning_round("a fusion"):
            trip = yield begin
    else:
        trip = yield begin
    if is_candidate:
        trip.abandon(Abandoned.TUNING)
    _read_source(trip, asked.source if asked is not None else None)
    if trip.error is None:
        hashes = _hashes(autotuner)
        has_compiled = _has_compiled_here(trip)
        if "hits" not in trip.notes:  # another tool has taken the place of our listener
            has_compiled = _is_written_since(trip, autotuner, hashes)
            trip.set(semconv.OUTCOME_FROM, "inferred")
        _read_kernel(trip, autotuner, hashes, has_compiled=has_compiled, made_in=_HERE)


def read_load(_call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `_make_launchers`: the time until the kernel is on its device."""
    started = time.perf_counter_ns()
    yield
    if trip.layer == LAYER:
        trip.add_stage("load", time.perf_counter_ns() - started)


def read_emitted(call: Call) -> Generator[None, None, None]:
    """Read `TritonBundler.read_and_emit`, which puts the files of a bundle into Triton's store."""
    yield
    graph = current()
    if graph is not None and call.error is None:
        artifacts = getattr(call.argument("bundle"), "kernel_artifacts", ())
        graph.notes["emitted"] = frozenset(artifact.kernel_hash for artifact in artifacts)


def read_listener(trip: OpenTrip, event: Mapping[str, Any]) -> None:
    """Read what Triton tells its listener of a compile in this process."""
    if trip.layer != LAYER:
        return
    hits: Any = trip.notes.setdefault("hits", [])
    hits.append(bool(event["cache_hit"]))
    if event["cache_hit"]:
        return
    for name, microseconds in event["times"].lowering_stages:
        trip.add_stage(name, int(microseconds) * 1000)


@contextlib.contextmanager
def tuning_round(name: str) -> Generator[None]:
    """Put a span around what a tuner tries.

    Args:
        name: of what is tuned.
    """
    span = start_parent(RUNTIME, "tune", name, LAYER)
    if span is not None:
        span.enter()
    token = _in_round.set(True)
    try:
        yield
    finally:
        _in_round.reset(token)
        if span is not None:
            span.leave()
            span.end()


def name_of(autotuner: Any) -> str:
    """Return what Inductor calls a kernel."""
    meta: Mapping[str, Any] = autotuner.inductor_meta or {}
    return str(meta.get("kernel_name") or autotuner.fn.__name__)


def worker_error(error: BaseException) -> str | None:
    """Return the class of what a worker has raised, which travels as text alone, or None of another error."""
    details = getattr(error, "details", None)
    if not isinstance(details, str):
        return None
    for line in details.rpartition('  File "')[2].splitlines()[1:]:
        if line and not line[0].isspace():
            return escape(line.partition(":")[0][:128])
    return None


def _read_kernel(
    trip: OpenTrip, autotuner: Any, hashes: tuple[str, ...], *, has_compiled: bool, made_in: str
) -> None:
    trip.outcome = CompilationOutcome.COMPILED if has_compiled else CompilationOutcome.LOADED
    trip.set(semconv.DEVICE_LOADED, True)
    properties = autotuner.device_props
    trip.set(semconv.TARGET, f"{properties.type}:{properties.cc}")
    trip.set(semconv.DEVICE, f"{properties.type}:{properties.index}")
    triton = f"triton {_triton_version()}"
    trip.set(semconv.BUILD, keys.build_name(triton))
    if hashes:
        trip.set_key(
            build=keys.build_text(triton),
            rest="\n".join(sorted(hashes)),
            components={
                **_compiler(trip, autotuner, made_in),
                "configs": str(len(hashes)),
                "source": str(autotuner.kernel_hash),
            },
            entry=",".join(sorted(hashes)),
        )
    else:
        trip.set(semconv.KEY_ABSENT_REASON, "unsupported")
    trip.set(semconv.STORE_KIND, "torch.inductor.bundle" if made_in == _BUNDLED else "triton.file")
    trip.set(semconv.STORE_LOCATION, _store(autotuner))
    if has_compiled:
        trip.set(semconv.STORE_STORED, True)
    graph = trip.parent
    if graph is not None and trip.abandoned is None:
        kernels = kernels_of(graph)
        kernels.names.append(trip.kernel)
        kernels.compiled += has_compiled


def _compiler(trip: OpenTrip, autotuner: Any, made_in: str) -> dict[str, str]:
    """Return what of the key tells of the compiler, as far as it is known.

    Torch brings a `ptxas` of its own, which workers take from the first and this process from its first
    kernel on; what stands in a key is what was there when this process first asked for its version.
    """
    if made_in == _BUNDLED:
        return {}  # whoever has written the bundle knows
    word: Any = trip.notes.get("word")
    if word is not None:
        return {"made_in": made_in, "compiler": word["compiler"], "ptxas": word["ptxas"] or "of triton"}
    if "hits" in trip.notes and made_in == _HERE:
        ptxas = os.environ.get("TRITON_PTXAS_PATH", "of triton")
        return {"made_in": made_in, "compiler": compiler_in_key(autotuner), "ptxas": ptxas}
    return {"made_in": made_in}


def _read_source(trip: OpenTrip, source: str | None) -> None:
    if source is None:
        return
    trip.set_source(source)
    # What stands before it depends on the host: settings of its tuner, a hash of its devices.
    function = source.rpartition("@triton.jit")[2]
    trip.set_code_digest(hashlib.sha256(function.encode(errors="replace")).hexdigest())


def _hashes(autotuner: Any) -> tuple[str, ...]:
    """Return Triton's own key of each configuration that is there."""
    return tuple(str(result.kernel.hash) for result in autotuner.compile_results or ())


def _has_compiled_here(trip: OpenTrip) -> bool:
    hits: Any = trip.notes.get("hits", ())
    return not all(hits)


def _is_written_since(trip: OpenTrip, autotuner: Any, hashes: Iterable[str]) -> bool:
    """Whether Triton's store has been written since the trip began, where nobody has said so.

    The files of a bundle are new as well, and known.
    """
    from torch._inductor.runtime.runtime_utils import triton_hash_to_path_key

    graph = trip.parent
    emitted: Any = graph.notes.get("emitted", ()) if graph is not None else ()
    folder = Path(_store(autotuner))
    for digest in hashes:
        key = triton_hash_to_path_key(digest)
        if key in emitted:
            continue
        written = [file.stat().st_mtime_ns for file in (folder / key).glob("__grp__*")]
        if written and max(written) >= trip.started_ns - _CLOCK_STEP_NS:
            return True
    return False


def _store(autotuner: Any) -> str:
    from torch._inductor.runtime.cache_dir_utils import triton_cache_dir

    return str(triton_cache_dir(autotuner.device_props.index or 0))


def _triton_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("triton")
    except PackageNotFoundError:
        return "of unknown version"
