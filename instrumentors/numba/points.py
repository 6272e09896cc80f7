"""Where Numba is wrapped, and why there."""

from __future__ import annotations

from typing import Final

from otel_kernel.instrumentors.numba.readers import (
    read_cfunc_compile,
    read_dispatcher_compile,
    read_entry_load,
    read_entry_save,
    read_gufunc_wrapper,
    read_index_key,
    read_lifted_compile,
    read_store_load,
    read_store_save,
    read_ufunc_compile,
)
from otel_kernel.patching import Point
from otel_kernel.shapes import probe, trip

_CACHING = "numba.core.caching"

POINTS: Final[tuple[Point, ...]] = (
    # The compiler's front door, past the table of overloads that the C dispatcher reads. The body is the
    # same from 0.61 to 0.68. Programs pickle `f.compile`, so the wrapper is a plain function.
    Point(
        "numba.core.dispatcher",
        "Dispatcher.compile",
        trip(read_dispatcher_compile),
        ("sig",),
        copied=True,
    ),
    # Loops and with-blocks lifted out of object mode are dispatchers of their own, with no store.
    Point("numba.core.dispatcher", "LiftedLoop.compile", trip(read_lifted_compile), ("sig",), copied=True),
    Point("numba.core.dispatcher", "LiftedWith.compile", trip(read_lifted_compile), ("sig",), copied=True),
    # `@vectorize` and `@guvectorize`, eager and dynamic, meet here and not in `Dispatcher.compile`.
    Point(
        "numba.np.ufunc.ufuncbuilder",
        "UFuncDispatcher._compile_core",
        trip(read_ufunc_compile),
        ("sig", "flags"),
    ),
    Point("numba.np.ufunc.wrappers", "_GufuncWrapper._compile_wrapper", trip(read_gufunc_wrapper)),
    Point("numba.core.ccallback", "CFunc.compile", trip(read_cfunc_compile)),
    # The store. Numba counts hits of functions only; what these calls return tells of every kind, and the
    # key and the file need not be worked out a second time.
    Point(_CACHING, "Cache.load_overload", probe(read_store_load)),
    Point(_CACHING, "Cache.save_overload", probe(read_store_save)),
    Point(_CACHING, "Cache._index_key", probe(read_index_key), optional=True),
    Point(_CACHING, "IndexDataCacheFile._load_data", probe(read_entry_load), ("name",), optional=True),
    Point(_CACHING, "IndexDataCacheFile._save_data", probe(read_entry_save), ("name",), optional=True),
)
