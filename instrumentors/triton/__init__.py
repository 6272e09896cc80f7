"""Triton's compiler: `@triton.jit`, Gluon, and what builds on them, such as Helion.

A trip is one specialization of one kernel on its way through `triton.compile`, from the store or compiled,
and onto the device where the launch that asked for it goes on to load it. A launch that finds its kernel in
memory is no trip. With `TRITON_INTERPRET=1` nothing is compiled, so there are no trips.

What the fields hold:

- kernel: `module.qualname` of the Python function, without a module whose name is generated. Of an IR file
  the name of its entry function.
- layer: `triton`.
- key: build text = `triton_key()` and the backend's hash, which is the version of `ptxas` and the
  architecture for NVIDIA, each on lines of its own; rest = hash of the source, hash of the options and the
  environment variables, one line each, and Triton's whole key as a last line where a stages hook adds to it.
  `store.entry` is Triton's key in hex; the folder in the store is its base32 without padding.
- key components: `source` (digest of the function and all it calls), signature, constants, attributes,
  backend, environment, each option by its name, `options` (digest of them all).
- identity: its code digest is Triton's `fn.cache_key`, of an IR file the sha256 of its suffix and text.
- specialization: arguments with types and what is known of their values, constants, chosen options.
- ir: the module as the frontend emitted it, before any pass. source: PTX or AMDGCN, else LLVM IR; absent
  with `TRITON_STORE_BINARY_ONLY=1`.
- outcome: rekeyed where a cache manager answers with the artifact of another key; Triton's own never does.
- device_loaded: whether the launch went on to load the kernel, which then is part of the duration and the
  stage `load`. Warmed-up kernels, ahead-of-time and asynchronous compiles are not loaded: if they are later,
  that is a span `load {kernel}`. So it is for all kernels of Triton 3.4, where the compile function cannot
  be told whether a launch goes on.
- stages: `key` (the first key of a process hashes Triton's own library), `ir`, each stage of the backend,
  `store`, `load`; `lookup` where the store had it. Without ours in `knobs.compilation.listener` only `key`
  and `load` are known, and the outcome is inferred.
- references: a module's own name for `triton.compile`, imported before us, and the copies that kernels keep are
  replaced too, and put back. One that is held elsewhere since before, such as in a default argument or a
  closure, is not seen: of such a compile Triton tells its listener, but neither when it began, nor that it
  failed, nor the options that the key is made of, and there would be nothing to end at the load.
- tuning: `@triton.autotune` runs its trips inside a span `tune {kernel}`, and a configuration that the tuner
  discards is abandoned.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from otel_kernel.instrumentor import KernelInstrumentor
from otel_kernel.patching import Point
from otel_kernel.slots import Slot
from otel_kernel.stores import StoreLocation, named_by

__all__ = ["TritonInstrumentor"]


class TritonInstrumentor(KernelInstrumentor):
    """Instruments Triton's compiler."""

    runtime: ClassVar[str] = "triton"
    module: ClassVar[str] = "triton"
    requires: ClassVar[str] = "triton >= 3.4, < 4"

    def points(self) -> tuple[Point | Slot, ...]:
        """Return the points in Triton's compiler, launcher and tuner."""
        from otel_kernel.instrumentors.triton.points import POINTS

        return POINTS

    @classmethod
    def store_location(cls) -> StoreLocation:
        """Return where Triton keeps its kernels."""
        home = os.environ.get("TRITON_HOME") or Path.home()
        return named_by("TRITON_CACHE_DIR") or StoreLocation(
            Path(home, ".triton", "cache"), "the default of TRITON_CACHE_DIR"
        )
