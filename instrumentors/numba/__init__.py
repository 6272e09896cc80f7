"""Numba on the CPU: `@njit`, `@vectorize`, `@guvectorize`, `@cfunc`, lifted loops and with-blocks.

A trip is one signature of one function on its way through Numba's compiler or out of its file store.
A call that finds its machine code in memory is no trip, also where Numba enters `compile` to type a call.
No trips: `@stencil` called from Python, ahead-of-time compilation (`numba.pycc`), CUDA.

What the fields hold:

- kernel: `module.qualname` of the Python function, with `.<loop>` or `.<with>` for code lifted out of it.
  Functions of Numba itself, such as the implementations of NumPy's, are marked `internal`.
- layer: `numba` for functions; `numba.ufunc` for the loop that NumPy calls, which `@vectorize` and
  `@guvectorize` build around their function. Only the loop of a gufunc is stored.
- key: build text = Numba, llvmlite and LLVM versions, target triple, CPU name and features; rest = Numba's
  base name of the store's files, its source stamp, the signature, and its hashes of bytecode and closure.
  Numba's key holds none of the options (`fastmath`, `NUMBA_OPT`, ...): the component `options` does, so a
  loaded artifact that was compiled with others can be told. No key without `cache=True`.
- identity: its code digest is over bytecode, names and constants of the function and the functions in it.
- ir: Numba IR before any pass. source: optimised LLVM IR; not to be had of a loaded function or of a loop.
- outcome: compiled or loaded; Numba never rekeys. Linking into the process is part of the call.
- stages: Numba's passes, nested trips included.

A store that cannot be read or written, and a damaged entry, are exceptions for the program: the trip fails.
"""

from __future__ import annotations

from typing import ClassVar

from otel_kernel.instrumentor import KernelInstrumentor
from otel_kernel.patching import Point
from otel_kernel.stores import StoreLocation, named_by

__all__ = ["NumbaInstrumentor"]


class NumbaInstrumentor(KernelInstrumentor):
    """Instruments Numba's CPU compiler."""

    runtime: ClassVar[str] = "numba"
    module: ClassVar[str] = "numba"
    requires: ClassVar[str] = "numba >= 0.61, < 1"

    def points(self) -> tuple[Point, ...]:
        """Return the points in Numba's compiler and store."""
        from otel_kernel.instrumentors.numba.points import POINTS

        return POINTS

    @classmethod
    def store_location(cls) -> StoreLocation:
        """Return where Numba keeps what is decorated with `cache=True`."""
        beside = (
            "__pycache__ beside each source file, or else the user's cache; NUMBA_CACHE_DIR names one folder"
        )
        return named_by("NUMBA_CACHE_DIR") or StoreLocation(None, beside)
