"""Where torch is wrapped, and why there."""

from __future__ import annotations

from typing import Final

from otel_kernel.carry import carry
from otel_kernel.instrumentors.torch import (
    aot_inductor,
    cpp_kernels,
    extensions,
    frames,
    graphs,
    nvrtc,
    triton_kernels,
    triton_tuning,
    workers,
)
from otel_kernel.patching import Point
from otel_kernel.shapes import notice, parent, probe, trip
from otel_kernel.slots import Slot

_FRAME = "torch._dynamo.convert_frame"
_AUTOGRAD = "torch._functorch._aot_autograd.autograd_cache"
_RESULT = "torch._functorch._aot_autograd.aot_autograd_result"
_COMPILE = "torch._inductor.compile_fx"
_STORE = "torch._inductor.codecache"
_GRAPH = "torch._inductor.graph"
_POOL = "torch._inductor.async_compile"
_HEURISTICS = "torch._inductor.runtime.triton_heuristics"
_WORKER = "torch._inductor.compile_worker"
_EXTENSION = "torch.utils.cpp_extension"

POINTS: Final[tuple[Point | Slot, ...]] = (
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
    # The source of a kernel of Triton's, whichever way it comes. Called once or twice a kernel: no trip.
    Point(
        _POOL,
        "AsyncCompile.triton",
        notice(triton_kernels.read_request),
        ("kernel_name", "source_code"),
        optional=True,
    ),
    # A kernel that a worker compiles: the future is asked once, and raises what the worker has raised, where
    # `precompile` is never reached. `_worker_compile_triton` itself is pickled by name.
    Point(_STORE, "LambdaFuture.result", trip(triton_kernels.read_answer), optional=True),
    # The only places with the time, the name and the source of what is asked for.
    Point(f"{_WORKER}.subproc_pool", "SubprocPool.submit", notice(workers.read_submit), optional=True),
    Point(
        f"{_WORKER}.tracked_process_pool",
        "TrackedProcessPoolExecutor.submit",
        notice(workers.read_submit),
        optional=True,
    ),
    # A kernel out of the bundle of a stored graph, which passes by Triton.
    Point(_STORE, "StaticAutotunerFuture.result", trip(triton_kernels.read_bundled), optional=True),
    # Inside of both, and by itself for a kernel that this process compiles: until the pool is ready, and for
    # the candidates of a tuner. `run` is the launch.
    Point(
        _HEURISTICS,
        "CachingAutotuner.precompile",
        trip(triton_kernels.read_precompile),
        ("warm_cache_only", "reload_kernel", "static_triton_bundle_key"),
        optional=True,
    ),
    Point(_HEURISTICS, "CachingAutotuner._make_launchers", probe(triton_kernels.read_load), optional=True),
    Point(
        "torch._inductor.triton_bundler",
        "TritonBundler.read_and_emit",
        notice(triton_kernels.read_emitted),
        ("bundle",),
        optional=True,
    ),
    # In a worker: what it compiles, and where the word of it is taken off before the kernel is stored.
    Point(_HEURISTICS, "CachingAutotuner._precompile_worker", notice(workers.read_work), optional=True),
    Point(_HEURISTICS, "CachingAutotuner.restore_after_unpickle", notice(workers.read_return), optional=True),
    Slot(
        "triton.knobs",
        "compilation.listener",
        triton_kernels.read_listener,
        optional=True,
        read_outside=workers.read_work_listener,
    ),
    # The rounds of Inductor's tuners. `coordinate_descent_tuning` may be entered at every launch.
    Point(
        "torch._inductor.select_algorithm",
        "AlgorithmSelectorCache.do_autotuning",
        notice(triton_tuning.read_choice),
        ("name",),
        optional=True,
    ),
    Point(
        "torch._inductor.select_algorithm",
        "TritonTemplateCaller.precompile",
        notice(triton_tuning.read_candidate),
        optional=True,
    ),
    Point(
        "torch._inductor.runtime.coordinate_descent_tuner",
        "CoordescTuner.autotune",
        notice(triton_tuning.read_descent),
        optional=True,
    ),
    Point(_HEURISTICS, "CachingAutotuner._precompile_config", trip(triton_tuning.read_config), optional=True),
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
