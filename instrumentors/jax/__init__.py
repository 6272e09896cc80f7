"""JAX: `jit`, `pmap`, ahead-of-time compilation, exported functions, and eager operations.

A trip is one XLA module on its way through `compile_or_get_cached`: compiled by XLA, or loaded from the
persistent compilation cache. A call that JAX answers from memory is no trip, and nothing of ours is on its
way. What fails while JAX traces or lowers a function never comes that far and is no trip either. Executables
that a program loads itself, by `jax.experimental.serialize_executable`, pass by all of JAX's stores.

What the fields hold:

- kernel: `jit(f)`, as JAX's own log says it; a name of JAX's and not of the code's version, also for what
  `grad`, `vmap` and the like have made of `f`. An eager operation over a function of the program names both,
  `jit(scan(step))`, and so does an exported function, `jit(call_exported(f))`. A module that was lowered
  before JAX was instrumented has XLA's name for it, `jit_f`. Functions of JAX's library, such as those that
  eager operations compile, are marked `internal`, unless a function of the program is inside them.
- layer: `jax`.
- key: build text = jaxlib's version and commit, platform and its version. Rest = JAX's own key, which is
  there without a cache folder too, and only not with `jax_enable_compilation_cache` off: `jit_f-` and a
  sha256. Up to JAX 0.10 it holds the path of the cache folder, and the component `cache_folders` does too.
- key components: JAX's inputs to that sha256, as it feeds them: the module, XLA flags, the compiler's options
  of this function (`options`) and in all (`compile_options`, the cache folders taken out), devices and
  topology, compression.
- identity: its code digest is the sha256 of the StableHLO without locations that JAX makes for its key. It
  differs between versions of JAX, as StableHLO does.
- specialization: types and shapes of the arguments as StableHLO has them, which buffers are donated, and
  over how many devices the module is partitioned.
- ir: StableHLO without locations. source: the HLO after XLA's optimizations, of a loaded module too. Both
  with large constants left out.
- outcome: compiled or loaded; another key always compiles. With `jax_share_binary_between_hosts` a process
  that got the executable from another one has loaded it, from the store `jax.peer`.
- store: of an entry that JAX cannot read `rejected` names the exception. JAX never replaces such an entry, so
  that every later process rejects it and compiles again. What JAX compiled and did not store has the
  threshold or the rule that kept it from doing so as its reason.
- original_ns: JAX keeps whole seconds, rounded down.
- stages: `trace` and `lower` as JAX's events tell them, which come before the trip and are no part of its
  duration (`trace` from JAX 0.6.1 on), then `key`, `store_read`, `compile`, `store_write` and `peer`. Which part
  of XLA took how long, and whether an autotuning cache of XLA's answered, Python cannot see.
- device_loaded: on the CPU loading is part of the trip. On a GPU XLA loads at the first launch.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import ClassVar

from otel_kernel.instrumentor import KernelInstrumentor
from otel_kernel.patching import Point
from otel_kernel.stores import StoreLocation, named_by

__all__ = ["JaxInstrumentor"]


class JaxInstrumentor(KernelInstrumentor):
    """Instruments JAX."""

    runtime: ClassVar[str] = "jax"
    module: ClassVar[str] = "jax"
    requires: ClassVar[str] = "jax >= 0.6, < 1"

    def points(self) -> tuple[Point, ...]:
        """Return the points in JAX's compiler and store."""
        from otel_kernel.instrumentors.jax.points import POINTS

        return POINTS

    @classmethod
    def rank(cls) -> tuple[int, int] | None:
        """Return what `jax.distributed` tells, once it is initialized."""
        distributed = sys.modules.get("jax._src.distributed")
        if distributed is None or distributed.global_state.client is None:
            return None
        return distributed.global_state.process_id, distributed.global_state.num_processes

    @classmethod
    def store_location(cls) -> StoreLocation:
        """Return where JAX keeps its executables."""
        return named_by("JAX_COMPILATION_CACHE_DIR") or StoreLocation(
            None, "JAX_COMPILATION_CACHE_DIR is not set", is_off=True
        )

    def _runtime_imported(self, module: ModuleType) -> None:
        super()._runtime_imported(module)
        if not self._refused:
            from otel_kernel.instrumentors.jax import events

            events.listen()

    def _restore(self) -> None:
        super()._restore()
        from otel_kernel.instrumentors.jax import events

        events.stop_listening()
