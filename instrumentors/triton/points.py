"""Where Triton is wrapped, and why there."""

from __future__ import annotations

from typing import Final

from otel_kernel.carry import carry
from otel_kernel.instrumentors.triton.copies import copies_of_compile
from otel_kernel.instrumentors.triton.readers import (
    LAUNCH,
    read_cache_key,
    read_compile,
    read_group,
    read_jit_compile,
    read_listener,
    read_make_ir,
)
from otel_kernel.instrumentors.triton.tuning import read_candidate, read_candidates
from otel_kernel.patching import Point
from otel_kernel.shapes import notice, parent, probe, trip
from otel_kernel.slots import Slot

_COMPILER = "triton.compiler.compiler"
_GLUON = "triton.experimental.gluon._runtime"
_TUNER = "triton.runtime.autotuner"

POINTS: Final[tuple[Point | Slot, ...]] = (
    # Store lookup, compile and the handle of the kernel, past the table in memory. Plain Triton, Gluon,
    # Helion and Inductor all come through it, by one of its names or by the copy that every JITFunction
    # takes at its first launch. The launch path is left alone: `_init_handles` runs at every launch.
    Point(_COMPILER, "compile", trip(read_compile), ("src",), copied=True, copies=copies_of_compile),
    # Triton's own time of the first stage begins before the key, which takes seconds once in a process.
    # In 3.4 the key is made inside `compile`.
    Point(
        _COMPILER,
        "get_cache_key",
        probe(read_cache_key),
        ("src", "backend", "backend_options", "env_vars"),
        optional=True,
    ),
    # Called on a miss only: tells a hit where another tool has put its own listener in place of ours.
    Point(_COMPILER, "ASTSource.make_ir", probe(read_make_ir), optional=True),
    Point(_COMPILER, "IRSource.make_ir", probe(read_make_ir), optional=True),
    Point(_GLUON, "GluonASTSource.make_ir", probe(read_make_ir), optional=True),
    # Knows the device, and whether a launch goes on to load. Not in 3.4.
    Point(
        "triton.runtime.jit",
        "JITFunction._do_compile",
        notice(read_jit_compile),
        ("device", "warmup"),
        optional=True,
    ),
    Point(
        "triton.runtime._async_compile",
        "AsyncCompileMode.submit",
        carry("compile_fn", LAUNCH),
        ("compile_fn",),
        optional=True,
    ),
    # Triton treats a damaged entry, or one that was moved, as none at all.
    Point(
        "triton.runtime.cache",
        "FileCacheManager.get_group",
        probe(read_group),
        ("filename",),
        optional=True,
    ),
    # `Autotuner.run` is on the launch path; these two are called in a round of tuning only.
    Point(_TUNER, "Autotuner.prune_configs", notice(read_candidates), optional=True),
    Point(_TUNER, "Autotuner._bench", parent(read_candidate), optional=True),
    # Hit and stage times. The JIT hooks would tell less, and setting one makes Triton serialize every
    # specialization, at which a kernel with an Enum among its constants fails.
    Slot("triton.knobs", "compilation.listener", read_listener, optional=True),
)
