"""How each point of Numba is read."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from types import FunctionType
from typing import Any

from numba.core import compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import ForceLiteralArg
from numba.core.sigutils import normalize_signature

from otel_kernel import semconv
from otel_kernel.instrumentors.numba.fields import (
    LLVM,
    NUMBA,
    PYTHON,
    Target,
    build_text,
    code_digest,
    file_digest,
    is_internal,
    kernel_name,
    key_text,
    options_text,
    signature_text,
    stamp_text,
    target_of,
)
from otel_kernel.records import Abandoned, AttributeValue, CompilationOutcome
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip, error_type

LAYER = "numba"
LOOP_LAYER = "numba.ufunc"


def read_dispatcher_compile(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `Dispatcher.compile`."""
    dispatcher = call.instance
    # The lock that the original takes, an RLock: with it, of two threads that want one signature only the
    # one that compiles is a trip, and the other finds the overload here.
    with global_compiler_lock:
        arguments = _arguments(call)
        if arguments is None or arguments in dispatcher.overloads:
            return
        function = dispatcher.py_func
        trip = yield _begin(function)
        _read_end(trip, function, arguments, dispatcher.targetctx)
        _read_store(trip, function, dispatcher.targetctx, dispatcher.targetoptions)
        _read_result(trip, function, dispatcher.overloads.get(arguments))


def read_lifted_compile(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `LiftedLoop.compile` and `LiftedWith.compile`."""
    lifted = call.instance
    with global_compiler_lock:
        arguments = _arguments(call)
        if arguments is None or arguments in lifted.overloads:
            return
        function, line = lifted.py_func, lifted.get_source_location()
        what = "<loop>" if type(lifted).__name__ == "LiftedLoop" else "<with>"
        trip = yield _begin(function, what, line)
        _read_end(trip, function, arguments, lifted.targetctx, what, line - function.__code__.co_firstlineno)
        _say_no_key(trip, "unsupported")
        result = lifted.overloads.get(arguments)
        if result is not None:
            trip.set_ir(lifted.func_ir.dump_to_string)
            _read_compiled(trip, result)


def read_ufunc_compile(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `UFuncDispatcher._compile_core`."""
    ufunc = call.instance
    with global_compiler_lock:
        arguments = _arguments(call)
        if arguments is None:
            return
        context = ufunc.targetdescr.target_context
        trip = yield _begin(ufunc.py_func)
        _read_end(trip, ufunc.py_func, arguments, context)
        _read_store(trip, ufunc.py_func, context, ufunc.targetoptions)
        _read_result(trip, ufunc.py_func, trip.result)


def read_ufunc_loop(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read what builds the loop around the function of `@vectorize`."""
    compiled = call.argument("cres")
    with global_compiler_lock:
        description = compiled.fndesc
        kernel = f"{description.modname}.{description.qualname}"
        trip = yield Begin(kernel, LOOP_LAYER, _internal(kernel))
        _read_end(trip, None, tuple(compiled.signature.args), compiled.target_context)
        _say_no_key(trip, "unsupported")


def read_gufunc_loop(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read what builds the loop around the function of `@guvectorize`, or loads it."""
    function, compiled = call.instance.py_func, call.argument("cres")
    with global_compiler_lock:
        trip = yield _begin(function, layer=LOOP_LAYER)
        _read_end(trip, function, tuple(compiled.signature.args), compiled.target_context)
        _read_store(trip, function, compiled.target_context, {})


def read_cfunc_compile(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `CFunc.compile`."""
    cfunc = call.instance
    with global_compiler_lock:
        context = cfunc._targetdescr.target_context
        trip = yield _begin(cfunc._pyfunc)
        _read_end(trip, cfunc._pyfunc, tuple(cfunc._sig.args), context)
        _read_store(trip, cfunc._pyfunc, context, cfunc._compiler.targetoptions)
        _read_result(trip, cfunc._pyfunc, trip.notes.get("result"))


def read_cfunc_result(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `CFunc._compile_uncached`, whose result `CFunc.compile` does not keep."""
    yield
    trip.notes["result"] = call.result


def read_store_load(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `Cache.load_overload`: what it finds is loaded; a damaged entry raises."""
    trip.notes["cache"] = call.instance
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
    elif "stored" not in trip.notes:
        trip.notes["store_fault"] = _why_declined(call.instance, call.argument("data"))


def _why_declined(cache: Any, data: Any) -> str:
    if not cache._enabled:
        return "the cache of this function is disabled"
    lifted = any(not each.can_cache for each in getattr(data, "lifted", ()))
    return "Numba does not store lifted code" if lifted else "Numba does not store dynamic globals"


def read_index_key(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `Cache._index_key`: signature, target, hashes of bytecode and closure."""
    yield
    if call.result is not None:
        trip.notes["index_key"] = call.result


def read_entry_load(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `IndexDataCacheFile._load_data`: the file that holds the artifact."""
    trip.notes["entry"] = call.argument("name")
    yield


def read_entry_save(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `IndexDataCacheFile._save_data`: the store has taken the artifact."""
    yield
    if call.error is None:
        trip.notes["entry"] = call.argument("name")
        trip.notes["stored"] = True


def _arguments(call: Call) -> tuple[Any, ...] | None:
    """Return the argument types, or None for what is no signature: the original will say so."""
    try:
        arguments, _ = normalize_signature(call.argument("sig"))
    except (AttributeError, NameError, SyntaxError, TypeError, ValueError):
        return None
    return tuple(arguments)


def _begin(function: FunctionType, part: str = "", line: int | None = None, layer: str = LAYER) -> Begin:
    name = kernel_name(function)
    code = function.__code__
    attributes: dict[str, AttributeValue] = {
        semconv.CODE_FUNCTION_NAME: name,
        semconv.CODE_FILE_PATH: code.co_filename,
        semconv.CODE_LINE_NUMBER: code.co_firstlineno if line is None else line,
        **_internal(name),
    }
    return Begin(f"{name}.{part}" if part else name, layer, attributes)


def _internal(kernel: str) -> dict[str, AttributeValue]:
    return {semconv.INTERNAL: True} if is_internal(kernel) else {}


def _read_end(
    trip: OpenTrip,
    function: FunctionType | None,
    arguments: tuple[Any, ...],
    context: Any,
    *part: object,
) -> None:
    """Read what all trips share: the outcome first, then what it was compiled for.

    Args:
        trip: the trip, after the call.
        function: whose code stands for the kernel's, or None.
        arguments: types of the arguments.
        context: Numba's target context.
        *part: tells the kernel from others with the same function.
    """
    error = trip.error
    if isinstance(error, ForceLiteralArg):
        trip.abandon(Abandoned.RETRY)  # Numba calls again, with literal types
    elif error is not None:
        location = getattr(error, "loc", None)
        if location is not None:
            trip.say_of_error(f"{location.filename}:{location.line}")
    else:
        trip.outcome = CompilationOutcome.LOADED if "loaded" in trip.notes else CompilationOutcome.COMPILED
        trip.set(semconv.DEVICE_LOADED, True)
    trip.set(semconv.SPECIALIZATION, signature_text(arguments))
    target = target_of(context)
    trip.set(semconv.TARGET, f"cpu:{target.cpu}")
    trip.set(semconv.BUILD, build_text(target))
    if function is not None:
        trip.set_code_digest(code_digest(function.__code__, *part))


def _say_no_key(trip: OpenTrip, why: str) -> None:
    if trip.outcome is not None:
        trip.set(semconv.KEY_ABSENT_REASON, why)


def _read_store(trip: OpenTrip, function: FunctionType, context: Any, options: dict[str, Any]) -> None:
    """Read what the store was asked and what it answered."""
    cache: Any = trip.notes.get("cache")
    if cache is None:  # no `cache=True`
        _say_no_key(trip, "disabled")
        return
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
        trip.set(semconv.STORE_STORED, True)
    _read_key(trip, function, cache, target_of(context), options)


def _read_key(
    trip: OpenTrip, function: FunctionType, cache: Any, target: Target, options: dict[str, Any]
) -> None:
    index_key: Any = trip.notes.get("index_key")
    if index_key is None:
        _say_no_key(trip, "unsupported" if cache._enabled else "bypassed")
        return
    signature, (bytecode, closure) = signature_text(index_key[0]), index_key[2]
    base_name = cache._impl.filename_base
    stamp = stamp_text(cache._cache_file._source_stamp)
    entry = trip.notes.get("entry")
    trip.set_key(
        build=build_text(target),
        rest=key_text(
            base_name=base_name, stamp=stamp, signature=signature, bytecode=bytecode, closure=closure
        ),
        entry=entry if isinstance(entry, str) else None,
        components={
            "base_name": base_name,
            "source_stamp": stamp,
            "source_digest": file_digest(function.__code__.co_filename),
            "signature": signature,
            "bytecode": bytecode,
            "closure": closure,
            "triple": target.triple,
            "cpu": target.cpu,
            "cpu_features": target.features,
            "numba": NUMBA,
            "llvm": LLVM,
            "python": PYTHON,
            "options": options_text(options),
        },
    )


def _read_result(trip: OpenTrip, function: FunctionType, result: Any) -> None:
    """Read what the compiler made of a function."""
    if trip.error is None and result is not None:
        trip.set_ir(lambda: str(compiler.run_frontend(function).dump_to_string()))
        _read_compiled(trip, result)


def _read_compiled(trip: OpenTrip, result: Any) -> None:
    if trip.outcome is CompilationOutcome.COMPILED:
        # A loaded library answers with a warning and a stub.
        trip.set_source(result.library.get_llvm_str)
    for passes in ((result.metadata or {}).get("pipeline_times") or {}).values():
        for name, timings in passes.items():
            # "24_native_lowering": the number is the pass's place in its pipeline.
            trip.add_stage(name.partition("_")[2] or name, int(timings.run * 1e9))
