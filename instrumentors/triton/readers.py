"""How the compile function of Triton, and what it calls, is read."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import triton.knobs as knobs
from triton._C.libtriton import get_cache_invalidating_env_vars
from triton.compiler.compiler import make_backend
from triton.runtime.cache import FileCacheManager, RemoteCacheManager
from triton.runtime.driver import driver

from otel_kernel import semconv
from otel_kernel.instrumentors.triton import fields
from otel_kernel.instrumentors.triton.tuning import is_discarded
from otel_kernel.pending import Load, finish
from otel_kernel.records import Abandoned, AttributeValue, CompilationOutcome
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip, error_type

try:
    from triton.runtime.cache import triton_key
except ImportError:  # 3.4
    from triton.compiler.compiler import triton_key  # pyright: ignore[reportAttributeAccessIssue] - not any more

try:
    from triton.runtime._async_compile import active_mode
except ImportError:  # 3.4
    active_mode = None


@dataclass(frozen=True, slots=True)
class _Launch:
    """What a JITFunction knows when it asks for a kernel."""

    function: Any
    device: int
    waits: bool
    """Whether a launch goes on, on this thread, to load the kernel."""


_VERSION = str(import_module("triton").__version__)

_STORES: dict[Any, str] = {FileCacheManager: "triton.file", RemoteCacheManager: "triton.remote"}
_BACKEND_SOURCES = ("ptx", "amdgcn", "llir")

LAUNCH: ContextVar[_Launch | None] = ContextVar("otel_kernel_triton_launch", default=None)
_compiling: ContextVar[Any] = ContextVar("otel_kernel_triton_source", default=None)


@dataclass(frozen=True, slots=True)
class _Key:
    """What Triton makes its key of."""

    source: Any
    backend: Any
    options: Any
    environment: Any


def read_jit_compile(call: Call) -> Generator[None, None, None]:
    """Read `JITFunction._do_compile`: leave word of the launch for the trip inside."""
    is_async = active_mode is not None and active_mode.get() is not None
    waits = not call.argument("warmup") and not is_async
    token = LAUNCH.set(_Launch(call.instance, call.argument("device"), waits))
    yield
    LAUNCH.reset(token)


def read_compile(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `triton.compile`."""
    source: Any = call.argument("src")
    is_file = isinstance(source, str)
    if not is_file and not hasattr(source, "fn"):
        return  # neither an IR file nor a function: Triton will say so
    if _compiling.get() is source:
        return  # another tool has wrapped one name of it by a call of another
    begin = _begin(source)
    token = _compiling.set(source)
    try:
        trip = yield begin
    finally:
        _compiling.reset(token)
    kernel: Any = trip.result
    key = trip.notes.get("key")
    if trip.error is None:
        trip.outcome = _outcome(trip, kernel)
        if key is None:
            key = _key_of(call, kernel)
    else:
        read_failure(trip, trip.error)
        if "is_found" in trip.notes and "is_miss" not in trip.notes:
            trip.set(semconv.STORE_REJECTED, error_type(trip.error))
        place = None if is_file else fields.line_of(trip.error, source.fn)
        if place is not None:
            trip.say_of_error(place)
    launch = LAUNCH.get()
    if launch is not None and (is_file or source.fn is not launch.function):
        launch = None  # a compile inside of that of the launch
    if isinstance(key, _Key):
        _read_key(trip, key, kernel)
        if launch is not None:
            trip.set(semconv.DEVICE, f"{key.backend.target.backend}:{launch.device}")
    _read_store(trip)
    _read_times(trip)
    if trip.error is None:
        _read_kernel(trip, kernel)
        finish(trip, kernel, LOAD, waits=launch is not None and launch.waits)


def read_cache_key(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `get_cache_key`: its arguments and its time."""
    trip.notes["key"] = _Key(
        call.argument("src"),
        call.argument("backend"),
        call.argument("backend_options"),
        call.argument("env_vars"),
    )
    started = time.perf_counter_ns()
    yield
    trip.notes["key_ns"] = time.perf_counter_ns() - started


def read_make_ir(_call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `make_ir` of a source: the store had nothing."""
    trip.notes["is_miss"] = True
    yield


def read_group(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `FileCacheManager.get_group`, which finds nothing where an entry is of no use."""
    yield
    if call.error is not None:
        trip.set(semconv.STORE_REJECTED, error_type(call.error))
    elif call.argument("filename") not in (call.result or {}):
        why = _why_rejected(Path(call.instance.cache_dir, f"__grp__{call.argument('filename')}"))
        trip.set(semconv.STORE_REJECTED, why)
    else:
        trip.notes["is_found"] = True


def read_listener(trip: OpenTrip, event: Mapping[str, Any]) -> None:
    """Read what Triton tells its listener at the end of a compile that went well."""
    trip.notes["is_miss"] = not event["cache_hit"]
    trip.notes["times"] = event["times"]


def read_failure(trip: OpenTrip, error: BaseException) -> None:
    """Read what left a compile or a load."""
    if is_discarded(error):
        trip.abandon(Abandoned.TUNING)


def _device(kernel: Any) -> str:
    active: Any = driver.active
    return f"{kernel.metadata.target.backend}:{active.get_current_device()}"


LOAD = Load(
    method="_init_handles",
    is_loaded=lambda kernel: kernel.module is not None,
    device=_device,
    failed=read_failure,
)


def _begin(source: Any) -> Begin:
    if isinstance(source, str):
        return Begin(fields.name_of_file(source), fields.LAYER, {semconv.CODE_FILE_PATH: source})
    function = source.fn.fn
    attributes: dict[str, AttributeValue] = {
        semconv.CODE_FUNCTION_NAME: f"{function.__module__}.{function.__qualname__}",
        semconv.CODE_FILE_PATH: function.__code__.co_filename,
        semconv.CODE_LINE_NUMBER: function.__code__.co_firstlineno,
    }
    return Begin(fields.name_of(function), fields.LAYER, attributes)


def _outcome(trip: OpenTrip, kernel: Any) -> CompilationOutcome:
    if "times" not in trip.notes:
        trip.set(semconv.OUTCOME_FROM, "inferred")
    if getattr(kernel.metadata, "hash", kernel.hash) != kernel.hash:
        return CompilationOutcome.REKEYED  # the entry was made under another key
    return CompilationOutcome.COMPILED if trip.notes.get("is_miss") else CompilationOutcome.LOADED


def _key_of(call: Call, kernel: Any) -> _Key:
    """Make the parts of the key again: in 3.4 no function is given them."""
    backend = make_backend(kernel.metadata.target)
    chosen = {**(call.argument("options") or {}), **kernel.src.parse_options()}
    return _Key(kernel.src, backend, backend.parse_options(chosen), get_cache_invalidating_env_vars())


def _read_key(trip: OpenTrip, key: _Key, kernel: Any) -> None:
    """Read the key and what is known before the compiler runs.

    Args:
        trip: to be filled.
        key: what Triton makes its key of.
        kernel: the compiled kernel, or None where the compile failed.
    """
    source, options, target = key.source, key.options, key.backend.target
    is_file = not hasattr(source, "fn")
    code_digest = source.hash() if is_file else source.fn.cache_key
    trip.set(semconv.TARGET, f"{target.backend}:{target.arch}")
    trip.set(semconv.SPECIALIZATION, fields.specialization(source, options))
    trip.set_code_digest(code_digest)
    texts = {
        "triton_key": triton_key(),
        "backend": key.backend.hash(),
        "source": source.hash(),
        "options": options.hash(),
        "environment": str(sorted(key.environment.items())),
    }
    entry, is_whole = _entry(texts, kernel)
    build, rest = fields.key_texts(**texts, entry=None if is_whole else entry)
    parts = {name: texts[name] for name in ("backend", "environment", "options", "triton_key")}
    parts["triton"] = _VERSION
    trip.set(semconv.BUILD, fields.build_name(_VERSION, texts["triton_key"], texts["backend"]))
    trip.set_key(
        build=build,
        rest=rest,
        components=fields.components(source, options, code_digest, parts),
        entry=entry,
    )


def _entry(texts: Mapping[str, str], kernel: Any) -> tuple[str, bool]:
    """Return Triton's own key, and whether these texts are all that it is made of."""
    order = ("triton_key", "source", "backend", "options", "environment")
    made = hashlib.sha256("-".join(texts[name] for name in order).encode()).hexdigest()
    return (made, True) if kernel is None else (kernel.hash, kernel.hash == made)


def _read_store(trip: OpenTrip) -> None:
    try:
        manager = knobs.cache.manager_class or FileCacheManager
    except (AttributeError, ImportError, RuntimeError):
        return  # the environment names none that can be had, as the compile has just found out
    trip.set(semconv.STORE_KIND, _STORES.get(manager) or f"{manager.__module__}.{manager.__qualname__}")
    trip.set(semconv.STORE_LOCATION, knobs.cache.dir)
    if trip.outcome is CompilationOutcome.LOADED:
        return
    trip.set(semconv.STORE_STORED, trip.outcome is CompilationOutcome.COMPILED)
    if trip.error is not None:
        trip.set(semconv.STORE_REASON, f"compiling raised {error_type(trip.error)}")
    elif trip.outcome is CompilationOutcome.REKEYED:
        trip.set(semconv.STORE_REASON, "the store answered with the entry of another key")


def _read_times(trip: OpenTrip) -> None:
    key_ns: Any = trip.notes.get("key_ns", 0)
    if key_ns:
        trip.add_stage("key", key_ns)
    times: Any = trip.notes.get("times")
    if times is None:
        return
    until_ir = times.ir_initialization * 1000 - key_ns
    if trip.outcome is not CompilationOutcome.COMPILED:
        trip.add_stage("lookup", until_ir)
        return
    trip.add_stage("ir", until_ir)
    for name, microseconds in times.lowering_stages:
        trip.add_stage(name, microseconds * 1000)
    trip.add_stage("store", times.store_results * 1000)


def _read_kernel(trip: OpenTrip, kernel: Any) -> None:
    trip.set(semconv.ARTIFACT_SIZE, len(kernel.kernel))
    texts = kernel.asm
    if trip.outcome is CompilationOutcome.COMPILED:
        ir = texts.get("source", getattr(kernel.src, "src", None))  # of an IR file its own text
        if isinstance(ir, str):
            trip.set_ir(ir)
        if knobs.compilation.always_compile:
            trip.set(semconv.REASON, "TRITON_ALWAYS_COMPILE is set")
            trip.set(semconv.STORE_LOOKUP, "bypass")
    source = next((texts[name] for name in _BACKEND_SOURCES if name in texts), None)
    if isinstance(source, str):
        trip.set_source(source)


def _why_rejected(group: Path) -> str | None:
    """Return what is wrong with the file that lists the files of an entry, or None if there is no file."""
    try:
        paths: Mapping[str, str] = json.loads(group.read_text())["child_paths"]
        gone = sorted(name for name, path in paths.items() if not Path(path).exists())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "the file that lists the files of the entry is damaged"
    return f"files of the entry are not where it says: {', '.join(gone)}"
