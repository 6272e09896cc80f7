"""Where JAX is wrapped, and why there."""

from __future__ import annotations

from typing import Final

from jax._src import compiler

from otel_kernel.instrumentors.jax.lowering import read_lowering
from otel_kernel.instrumentors.jax.readers import (
    read_cache_write,
    read_compile_or_get_cached,
    read_entry_get,
    read_entry_put,
    read_executable_put,
    read_hash_computation,
    read_key,
    read_share,
    read_store_lookup,
    read_xla_compile,
)
from otel_kernel.patching import Point
from otel_kernel.shapes import notice, probe, trip

_COMPILER = "jax._src.compiler"
_STORE = "jax._src.compilation_cache"

# XLA itself. 0.6.0 has the one name; later versions have the other, and up to 0.9 the first as well, where
# it compiles for devices that are not there.
_XLA_COMPILE = (
    "backend_compile_and_load" if hasattr(compiler, "backend_compile_and_load") else "backend_compile"
)

POINTS: Final[tuple[Point, ...]] = (
    # The one way to an executable, below every cache in memory. Its caller looks the name up at each call,
    # so functions that were jitted before are seen too.
    Point(
        _COMPILER,
        "compile_or_get_cached",
        trip(read_compile_or_get_cached),
        ("backend", "computation", "devices", "compile_options"),
    ),
    # The last place that knows the Python function: from here on there is a module with a name.
    Point("jax._src.interpreters.mlir", "lower_jaxpr_to_module", notice(read_lowering), ("jaxpr",)),
    Point(_COMPILER, _XLA_COMPILE, probe(read_xla_compile)),
    # Asked whenever there is a key, also where there is no folder. It raises what is wrong with an entry;
    # its caller makes a warning of that.
    Point(_STORE, "get_executable_and_time", probe(read_store_lookup), ("cache_key",)),
    # All that goes into the key, as arguments. Called more than once where profiles guide the compiler.
    Point("jax._src.cache_key", "get", probe(read_key), ("compile_options", "compression_algorithm")),
    # The digest of the module, at no cost: it is the first that JAX feeds into the hash.
    Point(
        "jax._src.cache_key", "_hash_computation", probe(read_hash_computation), ("hash_obj",), optional=True
    ),
    # Why an artifact is not stored: each of these three is reached only past the conditions of the last.
    Point(_COMPILER, "_cache_write", probe(read_cache_write), ("compile_time_secs",)),
    Point(_STORE, "put_executable_and_time", probe(read_executable_put)),
    Point("jax._src.lru_cache", "LRUCache.put", probe(read_entry_put), ("key",)),
    Point("jax._src.lru_cache", "LRUCache.get", probe(read_entry_get), optional=True),
    # Several processes that share what one of them compiles.
    Point(_COMPILER, "_compile_and_share_module", probe(read_share), optional=True),
)
