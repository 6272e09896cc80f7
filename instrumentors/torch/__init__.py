"""PyTorch: `torch.compile`, AOTInductor, C++ extensions, CUDA source.

A trip is one forward or one backward graph on its way through Inductor, and inside it each C++ kernel on its
way through the compiler. They are stored apart and miss apart: a loaded graph may compile its kernels, and a
compiled one may find them. So each has a layer of its own, and layers are never to be summed together.

Around the graphs are spans that are no trips. `dynamo.frame`: one round of compiling one Python frame, with
Dynamo's number of it (`compilation.id`) and, of a recompilation, the guard that failed
(`compilation.reason`). `aot_autograd`: what its own store said (`store.lookup`: hit, miss, guard_miss, bypass
or disabled) and why. A backward that is compiled when it first runs is outside of both, and has their names.

What the fields hold:

- layer: `torch.inductor.graph`, `torch.inductor.cpp_kernel`, `torch.inductor.triton_kernel`;
  `torch.aot_inductor` for a graph that is compiled into a package and for a package that is loaded;
  `torch.cpp_extension` for `load` and `load_inline`; `torch.nvrtc` for `torch.cuda._compile_kernel`.
- kernel: of a graph `module.qualname` of the frame, or of the module that torch has put a frame around, with
  `[forward]` or `[backward]`. Of a C++ kernel the name that the generated code gives it.
- key of a graph: build text = torch's version, its commit and Inductor's hash of its own sources, a line each;
  rest = Inductor's key and the guards on sizes, a line each, since artifacts for other sizes share Inductor's
  key. `store.entry` is Inductor's key, with a digest of the guards where there are any. With
  `bundled_autograd_cache` the rest is AOTAutograd's key and `forward` or `backward`. No key where the store is
  off or Inductor goes round it.
- key components of a graph: digests of graph, inputs, options and config, the guards, and the settings of
  `torch._inductor.config` that are part of the key and not as they come (`config_changed`).
- key of a C++ kernel: rest = the name of its files, which is a hash of source and command line. Of an
  extension: name, digest of its sources, flags; torch's own key of it is salted by the process.
- key of a kernel of Triton's: rest = Triton's own key of each of its configurations, a line each. Triton's key
  holds the version of `ptxas`, and torch brings another one than Triton: the components `made_in` (parent or
  worker), `compiler` (what the key says) and `ptxas` (what ran) tell two keys of one kernel apart.
- a kernel of Triton's that a worker has compiled is told of by the parent: it starts when the worker was asked,
  and its duration leaves out the time that the answer lay there. Where otel-kernel is in the worker too, the
  outcome is the worker's own (`outcome_from` = worker), else it is inferred from when Triton's store was
  written. Triton's own instrumentor makes no second trip of it, and workers tell nothing.
- outcome of a graph: rekeyed where the store had no entry under its key, it has kernels, and all of them were
  stored or in memory, so that lowering ran and the backend's compiler did not. A C++ kernel is compiled where
  the compiler ran for it in this process. An extension is compiled where ninja has written a new library.
- ir: of a graph, after Inductor's passes. source: the code that Inductor generates, and of a C++ kernel what
  the compiler gets. identity: its code digest is over the ir without comments, of a kernel over the source.
- specialization: kinds, sizes and devices of a graph's inputs; flags of an extension.
- stages: `key`, `lookup`, `lower`, `codegen`, `kernels` (until the last one is loaded), `isa_probe` and
  `header`, which a fresh store costs before its first kernel; `build` and `load` of a kernel.
- members: the kernels that a graph has asked for.
- abandoned: an entry of AOTAutograd's store whose graph is gone or cannot be loaded, a graph that Dynamo
  answers by running plain Python (`suppress_errors`), an analysis that starts again; and what Inductor's tuners
  try (tuning), each round of which has a span `tune {what}` around it.

Not seen: `torch.cuda.jiterator`, whose compiler and store are in C++ and run at a launch, with no call into
Python to wrap; C++ code of `torch.compile` that a package brings along; graphs of other backends; kernels that
a stored graph in C++ (`cpp_wrapper`) loads by itself; candidates of a tuner that workers compile.
A kernel that is in memory is no trip, nor is a call whose graph is.
"""

from __future__ import annotations

import getpass
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

from otel_kernel.instrumentor import KernelInstrumentor
from otel_kernel.patching import Point
from otel_kernel.slots import Slot
from otel_kernel.stores import StoreLocation, named_by
from otel_kernel.trip import tell_nothing_where

__all__ = ["TorchInstrumentor"]


class TorchInstrumentor(KernelInstrumentor):
    """Instruments torch's compilers."""

    runtime: ClassVar[str] = "torch"
    module: ClassVar[str] = "torch"
    requires: ClassVar[str] = "torch >= 2.11, < 3"

    def points(self) -> tuple[Point | Slot, ...]:
        """Return the points in Dynamo, AOTAutograd, Inductor and the builders of extensions."""
        from otel_kernel.instrumentors.torch.points import POINTS
        from otel_kernel.instrumentors.torch.workers import is_worker

        tell_nothing_where(is_worker)
        return POINTS

    @classmethod
    def rank(cls) -> tuple[int, int] | None:
        """Return what `torch.distributed` tells, once it is initialized."""
        distributed = sys.modules.get("torch.distributed")
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return None
        return distributed.get_rank(), distributed.get_world_size()

    @classmethod
    def store_location(cls) -> StoreLocation:
        """Return where Inductor keeps its artifacts."""
        try:
            user = re.sub(r'[\\/:*?"<>|]', "_", getpass.getuser())
        except (KeyError, OSError):
            user = f"uid_{os.getuid()}"
        return named_by("TORCHINDUCTOR_CACHE_DIR") or StoreLocation(
            Path(tempfile.gettempdir(), f"torchinductor_{user}"), "the default of TORCHINDUCTOR_CACHE_DIR"
        )
