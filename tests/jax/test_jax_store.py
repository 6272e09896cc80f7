"""JAX's persistent compilation cache: what it takes, what it gives back, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from telemetry import Telemetry

from otel_kernel import pipeline
from otel_kernel.records import CompilationOutcome, Trip

Options = Callable[..., None]

X = np.ones((4, 4), np.float32)
NEVER_REPLACED = "JAX never replaces an entry, and a damaged one is there"

pytestmark = pytest.mark.usefixtures("instrumentor")


def scaled(x: Any) -> Any:
    return jnp.sin(x).sum() * 3


def compile_anew(call: Callable[[], object] = lambda: jax.jit(scaled).lower(X).compile()) -> None:
    """Let JAX forget what it has in memory, as a new process would."""
    jax.clear_caches()
    call()


def executables(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.endswith("-atime")]


def attribute(trip: Trip, name: str) -> object:
    return trip.attributes.get(f"compute.kernel.{name}")


def test_a_stored_executable_is_loaded(store: Path, telemetry: Telemetry) -> None:
    pipeline.configure(level="full")
    compile_anew()
    compile_anew()
    compiled, loaded = telemetry.trips
    (entry,) = executables(store)

    assert CompilationOutcome.COMPILED is compiled.outcome
    assert CompilationOutcome.LOADED is loaded.outcome
    assert compiled.key == loaded.key
    assert attribute(compiled, "identity") == attribute(loaded, "identity")
    assert ("jax.file", str(store), True) == (
        attribute(compiled, "store.kind"),
        attribute(compiled, "store.location"),
        attribute(compiled, "store.stored"),
    )
    assert f"{attribute(compiled, 'store.entry')}-cache" == entry.name
    assert entry.stat().st_size == attribute(compiled, "artifact.size") == attribute(loaded, "artifact.size")
    assert attribute(compiled, "store.reason") is None
    assert attribute(loaded, "store.stored") is None
    assert attribute(compiled, "compilation.original_ns") is None
    assert loaded.ir is None
    assert isinstance(loaded.source, str)
    assert attribute(loaded, "stage.compile") is None
    assert isinstance(attribute(loaded, "stage.store_read"), int)


def test_a_loaded_executable_remembers_whole_seconds(store: Path, telemetry: Telemetry) -> None:
    from jax._src import compilation_cache

    compile_anew()
    (entry,) = executables(store)
    data = compilation_cache.decompress_executable(entry.read_bytes())
    executable, seconds = compilation_cache.extract_executable_and_time(data)

    assert seconds == 0  # it took less than one

    longer = compilation_cache.combine_executable_and_time(executable, 7)
    entry.write_bytes(compilation_cache.compress_executable(longer))
    compile_anew()

    assert attribute(telemetry.trips[1], "compilation.original_ns") == 7_000_000_000


def test_without_a_folder_there_is_a_key_and_no_store(options: Options, telemetry: Telemetry) -> None:
    options(compilation_cache_dir=None)
    compile_anew()
    (trip,) = telemetry.trips

    assert trip.key is not None
    assert str(attribute(trip, "store.entry")).startswith("jit_scaled-")
    assert attribute(trip, "store.kind") is None
    assert attribute(trip, "store.stored") is False
    assert attribute(trip, "store.reason") == "no cache folder is set (jax_compilation_cache_dir)"


def test_with_the_store_disabled_there_is_no_key(store: Path, options: Options, telemetry: Telemetry) -> None:
    options(enable_compilation_cache=False)
    compile_anew()
    (trip,) = telemetry.trips

    assert CompilationOutcome.COMPILED is trip.outcome
    assert trip.key is None
    assert attribute(trip, "key.absent_reason") == "disabled"
    assert attribute(trip, "store.stored") is None
    assert isinstance(attribute(trip, "identity"), str)


def _calls_back(x: Any) -> Any:
    jax.debug.print("{}", x[0, 0])
    return x + 1


@pytest.mark.parametrize(
    ("set_options", "reason"),
    [
        (
            {"persistent_cache_min_compile_time_secs": 1000.0},
            "it compiled in less than jax_persistent_cache_min_compile_time_secs=1000",
        ),
        (
            {"persistent_cache_min_entry_size_bytes": 10_000_000},
            "it is smaller than jax_persistent_cache_min_entry_size_bytes=10000000",
        ),
    ],
)
def test_an_executable_below_a_threshold_is_not_stored(
    set_options: dict[str, Any], reason: str, store: Path, options: Options, telemetry: Telemetry
) -> None:
    options(**set_options)
    compile_anew()
    (trip,) = telemetry.trips

    assert executables(store) == []
    assert trip.key is not None
    assert attribute(trip, "store.stored") is False
    assert reason == attribute(trip, "store.reason")


def test_a_full_store_does_not_take_what_is_larger_than_it(
    store: Path, options: Options, telemetry: Telemetry
) -> None:
    options(compilation_cache_max_size=100)
    with pytest.warns(UserWarning, match="exceeds the maximum cache size"):
        compile_anew()
    (trip,) = telemetry.trips

    assert attribute(trip, "store.stored") is False
    assert attribute(trip, "store.reason") == "it is larger than jax_compilation_cache_max_size=100"


def test_host_callbacks_are_stored_as_the_version_of_jax_does(store: Path, telemetry: Telemetry) -> None:
    compile_anew(lambda: jax.jit(_calls_back).lower(X).compile())
    (trip,) = telemetry.trips
    stored = executables(store) != []

    assert stored is attribute(trip, "store.stored")
    assert attribute(trip, "store.reason") == (
        None if stored else "it calls back into this process (jax.debug.print, io_callback, ...)"
    )


def _damage(entry: Path, how: str) -> None:
    data = entry.read_bytes()
    entry.write_bytes({"garbage": b"\xff" * 100, "emptied": b"", "cut": data[: len(data) // 2]}[how])


@pytest.mark.parametrize("how", ["garbage", "emptied", "cut"])
def test_a_damaged_entry_is_rejected_and_stays(how: str, store: Path, telemetry: Telemetry) -> None:
    compile_anew()
    (entry,) = executables(store)
    _damage(entry, how)
    left = entry.read_bytes()
    for _ in range(2):
        with pytest.warns(UserWarning, match="Error reading persistent compilation cache entry"):
            compile_anew()
    first, *later = telemetry.trips

    assert left == entry.read_bytes()
    for trip in later:
        assert CompilationOutcome.COMPILED is trip.outcome
        assert first.key == trip.key
        assert str(attribute(trip, "store.rejected")).endswith("rror")
        assert attribute(trip, "store.stored") is False
        assert attribute(trip, "store.reason") == NEVER_REPLACED


def test_a_folder_in_place_of_an_entry_is_a_fault_of_the_store(store: Path, telemetry: Telemetry) -> None:
    compile_anew()
    (entry,) = executables(store)
    entry.unlink()
    entry.mkdir()
    with pytest.warns(UserWarning, match="Error reading persistent compilation cache entry"):
        compile_anew()
    trip = telemetry.trips[1]

    assert CompilationOutcome.COMPILED is trip.outcome
    assert attribute(trip, "store.rejected") is None
    assert attribute(trip, "store.stored") is False
    assert attribute(trip, "store.reason") == "reading raised IsADirectoryError"


def test_an_entry_of_another_process_is_left_alone(store: Path, telemetry: Telemetry) -> None:
    from jax._src import compilation_cache

    compile_anew()
    (entry,) = executables(store)
    data = entry.read_bytes()
    entry.unlink()
    lookup = compilation_cache.get_executable_and_time

    def lookup_and_lose(*arguments: Any, **named: Any) -> Any:
        found = lookup(*arguments, **named)
        entry.write_bytes(data)  # now the other process has written it
        return found

    compilation_cache.get_executable_and_time = lookup_and_lose
    try:
        compile_anew()
    finally:
        compilation_cache.get_executable_and_time = lookup
    trip = telemetry.trips[1]

    assert CompilationOutcome.COMPILED is trip.outcome
    assert attribute(trip, "store.stored") is False
    assert attribute(trip, "store.reason") == "there is an entry already"


def test_an_error_of_the_store_that_jax_raises_fails_the_trip(
    store: Path, options: Options, telemetry: Telemetry
) -> None:
    compile_anew()
    (entry,) = executables(store)
    _damage(entry, "garbage")
    options(raise_persistent_cache_errors=True)
    with pytest.raises(Exception, match=r".") as caught:
        compile_anew()
    trip = telemetry.trips[1]
    kind = type(caught.value)

    assert trip.state == "failed"
    assert f"{kind.__module__}.{kind.__qualname__}" == trip.error_type == attribute(trip, "store.rejected")
    assert trip.outcome is None


def test_a_store_that_cannot_be_made_is_a_fault_of_the_store(
    options: Options, tmp_path: Path, telemetry: Telemetry
) -> None:
    (tmp_path / "file").touch()
    options(
        compilation_cache_dir=str(tmp_path / "file" / "store"),
        persistent_cache_min_compile_time_secs=0.0,
    )
    with pytest.warns(UserWarning, match="NotADirectoryError"):
        compile_anew()
    (trip,) = telemetry.trips

    assert CompilationOutcome.COMPILED is trip.outcome
    assert attribute(trip, "store.stored") is False
    assert attribute(trip, "store.reason") == "reading raised NotADirectoryError"


def test_an_entry_that_cannot_be_written(store: Path, telemetry: Telemetry) -> None:
    compile_anew()
    (entry,) = executables(store)
    entry.unlink()
    entry.symlink_to(store / "nowhere" / "entry")  # is not there, and cannot be written either
    with pytest.warns(UserWarning, match="Error writing persistent compilation cache entry"):
        compile_anew()
    trip = telemetry.trips[1]

    assert CompilationOutcome.COMPILED is trip.outcome
    assert attribute(trip, "store.stored") is False
    assert attribute(trip, "store.reason") == "writing raised FileNotFoundError"
