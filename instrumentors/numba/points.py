"""Where Numba is wrapped, and why there."""

from __future__ import annotations

from typing import Final

from otel_kernel.instrumentors.numba.readers import (
    read_cfunc_compile,
    read_cfunc_result,
    read_dispatcher_compile,
    read_entry_load,
    read_entry_save,
    read_gufunc_loop,
    read_index_key,
    read_lifted_compile,
    read_store_load,
    read_store_save,
    read_ufunc_compile,
    read_ufunc_loop,
)
from otel_kernel.patching import Point
from otel_kernel.shapes import probe, trip

_DISPATCHER = "numba.core.dispatcher"
_CACHING = "numba.core.caching"
_UFUNC = "numba.np.ufunc.ufuncbuilder"
_PARALLEL_UFUNC = "numba.np.ufunc.parallel"

POINTS: Final[tuple[Point, ...]] = (
    # The compiler's front door, past the table of overloads that the C dispatcher reads. The body is the
    # same from 0.61 to 0.68. Programs pickle `f.compile`, so the wrapper is a plain function.
    Point(_DISPATCHER, "Dispatcher.compile", trip(read_dispatcher_compile), ("sig",), copied=True),
    # Loops and with-blocks lifted out of object mode are dispatchers of their own, with no store.
    Point(_DISPATCHER, "LiftedLoop.compile", trip(read_lifted_compile), ("sig",), copied=True),
    Point(_DISPATCHER, "LiftedWith.compile", trip(read_lifted_compile), ("sig",), copied=True),
    # `@vectorize` and `@guvectorize`, eager and dynamic, meet here and not in `Dispatcher.compile`.
    Point(_UFUNC, "UFuncDispatcher._compile_core", trip(read_ufunc_compile), ("sig",)),
    # Around the function they compile the loop that NumPy calls: as long again, and in every process, since
    # only that of a gufunc is stored.
    Point(_UFUNC, "_build_element_wise_ufunc_wrapper", trip(read_ufunc_loop), ("cres",)),
    Point(_UFUNC, "GUFuncBuilder.build", trip(read_gufunc_loop), ("cres",)),
    Point(_PARALLEL_UFUNC, "ParallelUFuncBuilder.build", trip(read_ufunc_loop), ("cres",)),
    Point(_PARALLEL_UFUNC, "ParallelGUFuncBuilder.build", trip(read_gufunc_loop), ("cres",)),
    Point("numba.core.ccallback", "CFunc.compile", trip(read_cfunc_compile)),
    Point("numba.core.ccallback", "CFunc._compile_uncached", probe(read_cfunc_result), optional=True),
    # The store. Numba counts hits of functions only; what these calls return tells of every kind, and the
    # key and the file need not be worked out a second time.
    Point(_CACHING, "Cache.load_overload", probe(read_store_load)),
    Point(_CACHING, "Cache.save_overload", probe(read_store_save), ("data",)),
    Point(_CACHING, "Cache._index_key", probe(read_index_key), optional=True),
    Point(_CACHING, "IndexDataCacheFile._load_data", probe(read_entry_load), ("name",), optional=True),
    Point(_CACHING, "IndexDataCacheFile._save_data", probe(read_entry_save), ("name",)),
)
