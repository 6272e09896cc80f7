"""How a C++ kernel's way from source to a loaded library is read.

Inductor builds a library in a thread of its own and loads it in the thread that compiles the graph. Both are
one trip, which is held in between.
"""

from __future__ import annotations

import dis
import os
import sys
import time
from collections.abc import Generator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from otel_kernel import semconv
from otel_kernel.instrumentors.torch import keys
from otel_kernel.instrumentors.torch.kernels import kernels_of
from otel_kernel.records import CompilationOutcome, TextDigest, escape
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip, current, error_type

LAYER = "torch.inductor.cpp_kernel"

_UNNAMED = "cpp_kernel"
_GENERATED = frozenset({"async_compile", "CppWrapperCodeCache"})
"""Names in the modules that Inductor generates."""
_EXTENDED_ARGUMENT, _STORE_NAME = dis.opmap["EXTENDED_ARG"], dis.opmap["STORE_NAME"]


@dataclass(slots=True)
class _Library:
    """What is known of a library before it is built."""

    name: str
    source: str | None = None
    command: str | None = None


_asked: ContextVar[_Library | None] = ContextVar("otel_kernel_torch_library", default=None)

_built: dict[str, OpenTrip] = {}
"""Trips of libraries that are built and not loaded yet, by path; emptied with the graph that they belong to."""


def read_request(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `CppCodeCache.load_async`, once a kernel: its name, also where it is in memory."""
    library = _Library(_assigned_name() or _UNNAMED)
    kernels_of(trip).names.append(library.name)
    token = _asked.set(library)
    yield
    _asked.reset(token)


def read_source(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `write`, which makes the key of a library of its source and its command line."""
    yield
    library = _asked.get()
    if library is not None and call.error is None and call.argument("extension") == "main.cpp":
        library.source = str(call.argument("content"))
        trip.notes[_note(call.result[0])] = library


def read_build(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `_worker_compile_cpp`, on whichever thread: a trip where something is to be built."""
    builders = call.argument("cpp_builders")
    target = str(builders[-1].get_target_file_path())
    graph = current()
    library = _library(graph, target)
    if library is not None:
        library.command = str(builders[0].get_command_line())
    if builders[-1]._precompiling or all(os.path.exists(each.get_target_file_path()) for each in builders):  # noqa: PTH110 - torch's own text
        return
    trip = yield _begin(graph, target)
    if trip.error is None:
        # Another process may have built it while this one waited for the lock.
        is_built = "built" in trip.notes
        trip.outcome = CompilationOutcome.COMPILED if is_built else CompilationOutcome.LOADED
        trip.held = True
        _built[target] = trip
        if graph is not None and is_built:
            kernels_of(graph).compiled += 1
        if graph is not None and not graph.is_running:
            _finish(target)  # the graph has failed meanwhile, and none will load this
    else:
        _read_library(trip, graph, target)


def read_compiler(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
    """Read `CppBuilder.build`, which runs the compiler: for a kernel, a header, or to try an instruction set."""
    name = "build" if trip.layer in (LAYER, "torch.aot_inductor") else "isa_probe"
    if call.instance._precompiling or call.instance._preprocessing:
        name = "header"
    started = time.perf_counter_ns()
    yield
    trip.add_stage(name, time.perf_counter_ns() - started)
    if name == "build":
        trip.notes["built"] = True


def read_load(call: Call) -> Generator[Begin | OpenTrip, OpenTrip, None]:
    """Read `CppCodeCache._load_library`, past the table in memory: the end of the trip."""
    path = str(call.argument("path"))
    graph = current()
    held = _built.pop(path, None)
    started = time.perf_counter_ns()
    trip = yield held if held is not None else _begin(graph, path)
    if held is not None:
        trip.add_stage("load", time.perf_counter_ns() - started)
    if trip.error is None:
        if held is None:
            trip.outcome = CompilationOutcome.LOADED
        trip.set(semconv.DEVICE_LOADED, True)
        trip.set(semconv.DEVICE, "cpu:0")
    else:
        trip.set(semconv.STORE_REJECTED, error_type(trip.error) if held is None else None)
    _read_library(trip, graph, path)


def release(graph: OpenTrip) -> None:
    """End the trips of libraries of this graph that were built and not loaded."""
    for path, trip in list(_built.items()):
        if trip.parent is graph:
            _finish(path)


def _finish(path: str) -> None:
    trip = _built.pop(path, None)
    if trip is not None:
        _read_library(trip, trip.parent, path)
        trip.finish()


def _begin(graph: OpenTrip | None, path: str) -> Begin:
    library = _library(graph, path)
    return Begin(library.name if library is not None else _UNNAMED, LAYER)


def _library(graph: OpenTrip | None, path: str) -> _Library | None:
    found: Any = graph.notes.get(_note(_key(path))) if graph is not None else None
    return found if isinstance(found, _Library) else None


def _note(key: str) -> str:
    return f"library {key}"


def _key(path: str) -> str:
    return Path(path).name.partition(".")[0]


def _read_library(trip: OpenTrip, graph: OpenTrip | None, path: str) -> None:
    import torch._inductor.config as settings

    library = _library(graph, path)
    command = library.command if library is not None else None
    components: dict[str, str] = {}
    if library is not None and library.source is not None:
        digest = TextDigest.of(escape(library.source)).sha256
        trip.set_code_digest(digest)
        trip.set_source(library.source)
        components["source"] = digest
    compiler = _UNNAMED
    if command is not None:
        components |= keys.command_components(command)
        trip.set(semconv.TARGET, keys.cpu_target(command))
        compiler = keys.compiler_of(command)
    components["compiler"] = compiler
    key = _key(path)
    trip.set(semconv.BUILD, keys.build_name(compiler))
    if trip.outcome is not None:
        trip.set(semconv.ARTIFACT_SIZE, Path(path).stat().st_size)
    if settings.force_disable_caches:  # its folder is thrown away
        trip.set(semconv.KEY_ABSENT_REASON, "disabled")
        return
    trip.set_key(build=keys.build_text(compiler), rest=key, components=components, entry=key)
    trip.set(semconv.STORE_KIND, "torch.inductor.codecache")
    trip.set(semconv.STORE_LOCATION, str(Path(path).parent.parent))
    if trip.outcome is CompilationOutcome.COMPILED:
        trip.set(semconv.STORE_STORED, True)


def _assigned_name() -> str | None:
    """Return the variable that the code of a graph, which Inductor has generated, assigns the kernel to.

    Inductor itself gives a library no name but its key.
    """
    frame: Any = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - the documented way to walk the stack
    while frame is not None:
        if frame.f_code.co_name == "<module>" and not _GENERATED.isdisjoint(frame.f_globals):
            return _stored_name(frame)
        frame = frame.f_back
    return None


def _stored_name(frame: Any) -> str | None:
    code = frame.f_code.co_code
    argument = 0
    for at in range(frame.f_lasti + 2, len(code), 2):
        argument |= code[at + 1]
        if code[at] == _EXTENDED_ARGUMENT:
            argument <<= 8
            continue
        if code[at] == _STORE_NAME:
            return str(frame.f_code.co_names[argument])
        argument = 0
    return None
