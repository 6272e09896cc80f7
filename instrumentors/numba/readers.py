"""How each point of Numba is read."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Generator, Iterator
from importlib.metadata import version
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import llvmlite
import llvmlite.binding

from numba.core import compiler, config
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import ForceLiteralArg
from numba.core.sigutils import normalize_signature
from otel_kernel import semconv
from otel_kernel.records import Abandoned, AttributeValue, CompilationOutcome
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip, error_type

LAYER = "numba"
GUFUNC_LAYER = "numba.gufunc"

_NUMBA = version("numba")
_LLVMLITE = version("llvmlite")

# Settings of the process that change the machine code and are in no key of Numba's.
_CODE_SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "ENABLE_AVX")


def read_dispatcher_compile(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `Dispatcher.compile`."""
    dispatcher = call.instance
    # The lock that the original takes, an RLock: with it, of two threads that want one signature only the
    # one that compiles is a trip, and the other finds the overload here.
    with global_compiler_lock:
        signature, _ = normalize_signature(call.argument("sig"))
        arguments = tuple(signature)
        if arguments in dispatcher.overloads:
            return
        trip = yield _begin(dispatcher.py_func)
        _read_end(
            trip,
            dispatcher.py_func,
            arguments,
            dispatcher._cache,
            dispatcher.targetctx,
            dispatcher.targetoptions,
        )
        if trip.error is None:
            _read_result(trip, dispatcher.overloads.get(arguments), dispatcher.py_func)


def read_lifted_compile(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `LiftedLoop.compile` and `LiftedWith.compile`."""
    lifted = call.instance
    with global_compiler_lock:
        signature, _ = normalize_signature(call.argument("sig"))
        arguments = tuple(signature)
        if arguments in lifted.overloads:
            return
        trip = yield _begin(lifted.py_func)
        _read_end(trip, lifted.py_func, arguments, None, lifted.targetctx, {})
        if trip.error is None:
            _read_result(trip, lifted.overloads.get(arguments), lifted.py_func, lifted.func_ir)


def read_ufunc_compile(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `UFuncDispatcher._compile_core`."""
    ufunc = call.instance
    with global_compiler_lock:
        signature, _ = normalize_signature(call.argument("sig"))
        trip = yield _begin(ufunc.py_func)
        context = ufunc.targetdescr.target_context
        _read_end(trip, ufunc.py_func, tuple(signature), ufunc.cache, context, ufunc.targetoptions)
        if trip.error is None:
            _read_result(trip, trip.result, ufunc.py_func)


def read_gufunc_wrapper(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `_GufuncWrapper._compile_wrapper`."""
    wrapper = call.instance
    if wrapper.is_parfors:
        return  # part of the function with `parallel=True` that is compiling
    with global_compiler_lock:
        trip = yield _begin(wrapper.py_func, GUFUNC_LAYER)
        _read_end(trip, wrapper.py_func, tuple(wrapper.signature.args), wrapper.cache, wrapper.context, {})
        if trip.outcome is CompilationOutcome.COMPILED:
            library: Any = trip.result
            trip.set_source(library.get_llvm_str)


def read_cfunc_compile(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `CFunc.compile`."""
    cfunc = call.instance
    with global_compiler_lock:
        trip = yield _begin(cfunc._pyfunc)
        context = cfunc._targetdescr.target_context
        options = cfunc._compiler.targetoptions
        _read_end(trip, cfunc._pyfunc, tuple(cfunc._sig.args), cfunc._cache, context, options)
        if trip.error is None:
            trip.set_ir(lambda: _ir_of(cfunc._pyfunc))
            if trip.outcome is CompilationOutcome.COMPILED:
                trip.set_source(cfunc._library.get_llvm_str)


def read_store_load(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `Cache.load_overload`: what it finds is loaded; a damaged entry raises."""
    yield
    if call.result is not None:
        trip.notes["loaded"] = True
    elif isinstance(call.error, OSError):
        trip.notes["store_fault"] = f"reading raised {error_type(call.error)}"
    elif call.error is not None:
        trip.set(semconv.STORE_REJECTED, error_type(call.error))


def read_store_save(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `Cache.save_overload`, which may decline in silence or raise."""
    yield
    if call.error is not None:
        trip.notes["store_fault"] = f"saving raised {error_type(call.error)}"


def read_index_key(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `Cache._index_key`: signature, target, hashes of bytecode and closure."""
    yield
    if call.result is not None:
        trip.notes["index_key"] = call.result


def read_entry_load(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `IndexDataCacheFile._load_data`: the file that held the artifact."""
    yield
    if call.error is None:
        trip.notes["entry"] = call.argument("name")


def read_entry_save(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `IndexDataCacheFile._save_data`: the store has taken the artifact."""
    yield
    if call.error is None:
        trip.notes["entry"] = call.argument("name")
        trip.notes["stored"] = True


def _begin(function: FunctionType, layer: str = LAYER) -> Begin:
    kernel = f"{function.__module__}.{function.__qualname__}"
    code = function.__code__
    attributes: dict[str, AttributeValue] = {
        semconv.CODE_FUNCTION_NAME: kernel,
        semconv.CODE_FILE_PATH: code.co_filename,
        semconv.CODE_LINE_NUMBER: code.co_firstlineno,
    }
    if function.__module__ == "numba" or (function.__module__ or "").startswith("numba."):
        attributes[semconv.INTERNAL] = True
    return Begin(kernel, layer, attributes)


def _read_end(
    trip: OpenTrip,
    function: FunctionType,
    arguments: tuple[Any, ...],
    cache: Any,
    context: Any,
    options: dict[str, Any],
) -> None:
    """Read what all kinds of trips share: the outcome first, then key and store."""
    error = trip.error
    if isinstance(error, ForceLiteralArg):
        trip.abandon(Abandoned.RETRY)  # Numba calls again, with literal types
    elif error is not None:
        location = getattr(error, "loc", None)
        if location is not None:
            trip.say_of_error(f"{location.filename}:{location.line}")
    else:
        trip.outcome = CompilationOutcome.LOADED if "loaded" in trip.notes else CompilationOutcome.COMPILED
    trip.set(semconv.DEVICE_LOADED, True if error is None else None)
    trip.set(semconv.SPECIALIZATION, str(arguments))
    triple, cpu, features = _target(context)
    trip.set(semconv.TARGET, f"cpu:{cpu}")
    trip.set_code_digest(_code_digest(function.__code__))
    build = _build(triple, cpu, features)
    trip.set(semconv.BUILD, build)
    if cache is None or isinstance(cache, NullCache):
        trip.set(semconv.KEY_ABSENT_REASON, "unsupported" if cache is None else "disabled")
        return
    _read_store(trip, cache)
    _read_key(trip, function, cache, build, (triple, cpu, features), options)


def _read_store(trip: OpenTrip, cache: Any) -> None:
    trip.set(semconv.STORE_KIND, "numba.file")
    trip.set(semconv.STORE_LOCATION, cache.cache_path)
    entry = trip.notes.get("entry")
    if isinstance(entry, str):
        with contextlib.suppress(OSError):  # another process may have taken it away since
            trip.set(semconv.ARTIFACT_SIZE, Path(cache.cache_path, entry).stat().st_size)
    fault = trip.notes.get("store_fault")
    if isinstance(fault, str):
        trip.set(semconv.STORE_STORED, False)
        trip.set(semconv.STORE_REASON, fault)
    elif trip.outcome is CompilationOutcome.COMPILED:
        stored = "stored" in trip.notes
        trip.set(semconv.STORE_STORED, stored)
        if not stored:
            trip.set(semconv.STORE_REASON, _why_declined(cache))


def _why_declined(cache: Any) -> str:
    if not cache._enabled:
        return "the cache of this function is disabled"
    # Numba declines these and warns: what it would load again would not be the same.
    return "Numba does not cache lifted code or dynamic globals"


def _read_key(
    trip: OpenTrip,
    function: FunctionType,
    cache: Any,
    build: str,
    target: tuple[str, str, str],
    options: dict[str, Any],
) -> None:
    index_key: Any = trip.notes.get("index_key")
    if index_key is None:
        trip.set(semconv.KEY_ABSENT_REASON, "bypassed" if not cache._enabled else "unsupported")
        return
    signature, _, (bytecode, closure) = index_key
    base_name = cache._impl.filename_base
    stamp = _stamp_text(cache._cache_file._source_stamp)
    entry = trip.notes.get("entry")
    triple, cpu, features = target
    trip.set_key(
        build=build,
        rest="\n".join((base_name, stamp, str(signature), bytecode, closure)),
        entry=entry if isinstance(entry, str) else None,
        components={
            "base_name": base_name,
            "source_stamp": stamp,
            "source_digest": _file_digest(function.__code__.co_filename),
            "signature": str(signature),
            "bytecode": bytecode,
            "closure": closure,
            "triple": triple,
            "cpu": cpu,
            "cpu_features": features,
            "numba": _NUMBA,
            "llvm": _llvm_version(),
            "options": _options(options),
        },
    )


def _read_result(trip: OpenTrip, result: Any, function: FunctionType, func_ir: Any = None) -> None:
    """Read what the compiler made: texts and stages."""
    if result is None:
        return
    trip.set_ir(func_ir.dump_to_string if func_ir is not None else lambda: _ir_of(function))
    if trip.outcome is CompilationOutcome.COMPILED:
        # A loaded library answers with a warning and a stub.
        trip.set_source(result.library.get_llvm_str)
    for passes in ((result.metadata or {}).get("pipeline_times") or {}).values():
        for name, timings in passes.items():
            # "24_native_lowering": the number is the pass's place in its pipeline.
            trip.add_stage(name.partition("_")[2] or name, int(timings.run * 1e9))


def _ir_of(function: FunctionType) -> str:
    return str(compiler.run_frontend(function).dump_to_string())


def _target(context: Any) -> tuple[str, str, str]:
    """Return (triple, CPU name, CPU features)."""
    triple, cpu, features = context.codegen().magic_tuple()
    return str(triple), str(cpu), str(features)


def _llvm_version() -> str:
    return ".".join(map(str, llvmlite.binding.llvm_version_info))


def _build(triple: str, cpu: str, features: str) -> str:
    digest = hashlib.blake2b(features.encode(), digest_size=8).hexdigest()
    return f"numba {_NUMBA}; llvmlite {_LLVMLITE}; LLVM {_llvm_version()}; {triple}; {cpu}; features {digest}"


def _stamp_text(stamp: Any) -> str:
    """Return the stamp of the source file: (mtime, size) below 0.68, sha256 of its bytes from then on."""
    return stamp.hex() if isinstance(stamp, bytes) else repr(stamp)


def _options(options: dict[str, Any]) -> str:
    """Return the options that are not at their defaults, and the settings of the process that change code."""
    chosen = [f"{name}={options[name]!r}" for name in sorted(options) if options[name] not in (None, False)]
    settings = {name: getattr(config, name, None) for name in _CODE_SETTINGS}
    shown = [f"{name}={int(value)}" for name, value in settings.items() if value is not None]
    return " ".join(chosen + shown)


def _file_digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return "no file"  # a cell of a notebook, `exec`


def _code_digest(code: CodeType) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in _code_parts(code):
        digest.update(part)
        digest.update(b"\0")
    return digest.hexdigest()


def _code_parts(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)).encode(
        "utf-8", "backslashreplace"
    )
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant)
        else:
            shown = sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant
            yield repr(shown).encode("utf-8", "backslashreplace")
