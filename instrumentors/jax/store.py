"""JAX's persistent compilation cache, and the rules by which it takes an executable or not."""

from __future__ import annotations

from typing import Any

from jax._src import compilation_cache, compiler, config, distributed, lru_cache

from otel_kernel import semconv
from otel_kernel.records import CompilationOutcome
from otel_kernel.shapes import Call
from otel_kernel.trip import OpenTrip

FOLDER = "jax.file"
PEER = "jax.peer"


def read_store(trip: OpenTrip) -> None:
    """Say which store the trip met and whether it took the executable."""
    cache: Any = compilation_cache._cache
    if "peer" in trip.notes:
        trip.set(semconv.STORE_KIND, PEER)
    elif cache is not None:
        trip.set(semconv.STORE_KIND, FOLDER)
        trip.set(semconv.STORE_LOCATION, str(cache._path))
    size = trip.notes.get("size")
    trip.set(semconv.ARTIFACT_SIZE, size if isinstance(size, int) else None)
    if trip.outcome is CompilationOutcome.COMPILED or {"read_fault", "write_fault"} & trip.notes.keys():
        reason = _why_not_stored(trip, cache)
        trip.set(semconv.STORE_STORED, reason is None)
        trip.set(semconv.STORE_REASON, reason)


def _why_not_stored(trip: OpenTrip, cache: Any) -> str | None:
    """Return why the store did not take an executable, or None if it did, in the order of JAX's own rules."""
    notes: dict[str, Any] = trip.notes
    if "write_fault" in notes:
        return str(notes["write_fault"])
    if "put" in notes and notes["put"] is None:
        return None
    refused = notes.get("read_fault") or notes.get("put")
    if refused is not None:
        return str(refused)
    if cache is None:
        return "no cache folder is set (jax_compilation_cache_dir)"
    if distributed.global_state.process_id != 0:
        return f"this is process {distributed.global_state.process_id}, and only process 0 writes"
    if notes.get("host_callbacks"):
        return "it calls back into this process (jax.debug.print, io_callback, ...)"
    least = config.persistent_cache_min_compile_time_secs.value
    if notes.get("compile_seconds", least) < least:
        return f"it compiled in less than jax_persistent_cache_min_compile_time_secs={least:g}"
    if "serialized" in notes:
        least = config.persistent_cache_min_entry_size_bytes.value
        return f"it is smaller than jax_persistent_cache_min_entry_size_bytes={least}"
    return "JAX did not try to"


def why_not_put(cache: Any, key: str, value: bytes, *, rejected: bool) -> str | None:
    """Return why `LRUCache.put` will do nothing, in silence, or None if it will write."""
    if cache.eviction_enabled and len(value) > cache.max_size:
        return f"it is larger than jax_compilation_cache_max_size={cache.max_size}"
    if not (cache._path / f"{key}{lru_cache._CACHE_SUFFIX}").exists():
        return None
    # Another process may have been faster, too.
    return (
        "JAX never replaces an entry, and a damaged one is there" if rejected else "there is an entry already"
    )


def why_no_key(trip: OpenTrip, backend: Any) -> str:
    """Return the `key.absent_reason` of a trip that never asked the store."""
    if "key_fault" in trip.notes:
        return "bypassed"
    enabled = config.enable_compilation_cache.value
    able = getattr(backend, "supports_executable_serialization", True)
    return "unsupported" if enabled and not able else "disabled"


def is_shared_in_memory(call: Call) -> bool:
    """Whether `compile_or_get_cached` will find the executable in the table of those shared between processes.

    JAX asks that table last, inside the trip, so the key has to be made here. Only where several processes
    share, and this one holds some already.
    """
    if not config.share_binary_between_hosts.value or distributed.global_state.client is None:
        return False
    shared: dict[str, Any] = getattr(compiler._compile_and_share_module, "modules_cache", {})
    if not shared:
        return False
    backend = call.argument("backend")
    key = compiler._get_cache_key(
        call.argument("compile_options"),
        backend=backend,
        computation=call.argument("computation"),
        devices=call.argument("devices"),
    )
    return key in shared and not compilation_cache.is_executable_in_cache(backend, key)
