"""Where torch is wrapped, and why there."""

from __future__ import annotations

from typing import Final

from otel_kernel.carry import carry
from otel_kernel.instrumentors.torch import aot_inductor, cpp_kernels, extensions, frames, graphs, nvrtc
from otel_kernel.patching import Point
from otel_kernel.shapes import notice, parent, probe, trip

_FRAME = "torch._dynamo.convert_frame"
_AUTOGRAD = "torch._functorch._aot_autograd.autograd_cache"
_RESULT = "torch._functorch._aot_autograd.aot_autograd_result"
_COMPILE = "torch._inductor.compile_fx"
_STORE = "torch._inductor.codecache"
_GRAPH = "torch._inductor.graph"
_POOL = "torch._inductor.async_compile"
_EXTENSION = "torch.utils.cpp_extension"

POINTS: Final[tuple[Point, ...]] = (
    # Entered under Dynamo's lock for every frame and every recompilation: a span around `torch.compile`'s own
    # wrapper would hold the wait for the lock. `torch._dynamo.callback` tells neither result nor reason.
    Point(_FRAME, "_compile", parent(frames.read_frame), ("code", "globals", "one_graph", "compile_id")),
    # Asked once a recompilation, whether or not a log is on; `CompilationMetrics` has it after the end only.
    Point(_FRAME, "get_and_maybe_log_recompilation_reasons", notice(frames.read_reasons)),
    # Around lookup, tracing and the compilers. This name of it is the one that Inductor goes through.
    Point("torch._dynamo.backends.common", "aot_module_simplified", parent(frames.read_autograd), ("mod",)),
    # Its own store. What it says of hit, miss and bypass goes to a log and to counters of the whole process;
    # these calls return it.
    Point(_AUTOGRAD, "AOTAutogradCache.try_load", notice(frames.read_autograd_load)),
    Point(_AUTOGRAD, "AOTAutogradCache._lookup", notice(frames.read_autograd_lookup), ("cache_info",)),
    Point(_AUTOGRAD, "autograd_cache_key", notice(frames.read_autograd_key)),
    # One graph, forward or backward: lookup and compiler. A global of its module, looked up at call time;
    # `compile_fx_inner` is a default argument elsewhere. A backward may come long after its forward.
    Point(_COMPILE, "_compile_fx_inner", trip(graphs.read_compile), ("gm",)),
    # On a hit in AOTAutograd's store the compiler above is never called. Forward and backward are both
    # loaded before one of them is used, and given up together.
    Point(_RESULT, "FxGraphCacheLoadable.load", trip(graphs.read_load)),
    Point(_RESULT, "BundledOutputCodeLoadable.post_compile", trip(graphs.read_bundled_load), ("result",)),
    Point(_RESULT, "GenericAOTAutogradResult.wrap_post_compile", notice(graphs.read_entry)),
    # Inductor's own store: both ways to a graph meet in these.
    Point(_STORE, "FxGraphCache.prepare_key", probe(graphs.read_key)),
    Point(_STORE, "FxGraphCache.load_with_key", probe(graphs.read_lookup), ("key", "local")),
    Point(_STORE, "FxGraphCache._write_to_local_cache", probe(graphs.read_store), ("content",)),
    Point(_STORE, "FxGraphCache._record_result", probe(graphs.read_record_result), ("remote_hit",)),
    # Where the time of a graph goes, as far as it is not its kernels'.
    Point(_GRAPH, "GraphLowering.run", probe(graphs.read_lower), optional=True),
    Point(_GRAPH, "GraphLowering.codegen", probe(graphs.read_codegen), optional=True),
    Point(_POOL, "AsyncCompile.wait", probe(graphs.read_wait), optional=True),
    # A C++ kernel is asked for here, by code that Inductor has generated, also where it is in memory.
    Point(_STORE, "CppCodeCache.load_async", probe(cpp_kernels.read_request)),
    Point(_STORE, "write", probe(cpp_kernels.read_source), ("content", "extension")),
    # The thread of the pool that builds a library has no context of its own.
    Point(_POOL, "AsyncCompile.submit", carry("task"), ("task",)),
    # Built on a thread of the pool, and once more, with nothing to do, by who loads it. The partial of it
    # that goes to the pool may be pickled.
    Point(_STORE, "_worker_compile_cpp", trip(cpp_kernels.read_build), ("cpp_builders",), copied=True),
    Point(_STORE, "CppCodeCache._load_library", trip(cpp_kernels.read_load), ("path",)),
    # Every run of the compiler: libraries, headers and attempts at an instruction set. Of a fresh store the
    # last two take most of the time of the first graph.
    Point("torch._inductor.cpp_builder", "CppBuilder.build", probe(cpp_kernels.read_compiler)),
    # Ahead of time a graph goes through `_compile_fx_inner` as well, and its source through this.
    Point(
        _STORE,
        "AotCodeCompiler.compile",
        probe(aot_inductor.read_sources),
        ("graph", "wrapper_code", "kernel_code"),
    ),
    Point("torch._inductor.package", "load_package", trip(aot_inductor.read_package), ("path",)),
    # `load` and `load_inline` come through these; the version in between is salted by the process.
    Point(_EXTENSION, "_jit_compile", notice(extensions.read_request), ("name",)),
    Point(
        _EXTENSION,
        "_write_ninja_file_and_build_library",
        trip(extensions.read_build),
        ("name", "sources", "build_directory", "is_standalone", "with_cuda"),
    ),
    Point(_EXTENSION, "_import_module_from_library", trip(extensions.read_import), ("module_name", "path")),
    # Up to 2.13 a process that finds another one building waits for it and does not ask ninja.
    Point("torch.utils.file_baton", "FileBaton.wait", notice(extensions.read_wait), optional=True),
    Point(
        "torch.cuda",
        "_compile_kernel",
        trip(nvrtc.read_compile),
        ("kernel_source", "kernel_name", "nvcc_options"),
    ),
    Point("torch.cuda._utils", "_nvrtc_compile", probe(nvrtc.read_nvrtc), ("compute_capability",)),
)
