"""Stores that moved, are damaged, or are of another kind."""

# Triton has no types that say enough.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest
import triton_kernels as kernels
from telemetry import Telemetry
from triton.runtime.cache import FileCacheManager, RemoteCacheBackend, RemoteCacheManager
from triton_device import floats

from otel_kernel import semconv
from otel_kernel.records import CompilationOutcome, Trip

knobs: Any = import_module("triton.knobs")


def components(trip: Trip) -> dict[str, object]:
    return {
        name: value
        for name, value in trip.attributes.items()
        if name.startswith(semconv.KEY_COMPONENT) or name == semconv.KEY_COMPONENT_OTHER
    }


def test_a_store_that_moved_compiles_again_and_only_its_location_differs(
    triton_telemetry: Telemetry, store: Path, restart: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels.scale[(1,)](floats(64), size=64)
    moved = store.with_name("moved")
    store.rename(moved)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(moved))
    restart()
    kernels.scale[(1,)](floats(64), size=64)

    before, after = triton_telemetry.trips
    assert (CompilationOutcome.COMPILED, CompilationOutcome.COMPILED) == (before.outcome, after.outcome)
    assert before.key == after.key
    assert components(before) == components(after)
    assert before.attributes[semconv.STORE_ENTRY] == after.attributes[semconv.STORE_ENTRY]
    assert str(store) == before.attributes[semconv.STORE_LOCATION]
    assert str(moved) == after.attributes[semconv.STORE_LOCATION]
    rejected = str(after.attributes[semconv.STORE_REJECTED])
    assert rejected.startswith("files of the entry are not where it says: ")
    assert "scale.cubin" in rejected
    assert semconv.STORE_REJECTED not in before.attributes


def only(store: Path, pattern: str) -> Path:
    (found,) = store.rglob(pattern)
    return found


def test_a_list_of_files_that_is_damaged_is_said(
    triton_telemetry: Telemetry, store: Path, restart: Any
) -> None:
    kernels.scale[(1,)](floats(64), size=64)
    only(store, "__grp__scale.json").write_text("{")
    restart()
    try:
        kernels.scale[(1,)](floats(64), size=64)
    except json.JSONDecodeError:  # so do versions below 3.8
        expected = "json.decoder.JSONDecodeError"
    else:
        expected = "the file that lists the files of the entry is damaged"

    assert expected == triton_telemetry.trips[1].attributes[semconv.STORE_REJECTED]


# The kernel that could not be made is complained about by Triton when it is thrown away.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_metadata_that_is_damaged_fails_the_trip(
    triton_telemetry: Telemetry, store: Path, restart: Any
) -> None:
    kernels.scale[(1,)](floats(64), size=64)
    only(store, "scale.json").write_text("{")
    restart()
    with pytest.raises(json.JSONDecodeError):
        kernels.scale[(1,)](floats(64), size=64)

    trip = triton_telemetry.trips[1]
    assert "json.decoder.JSONDecodeError" == trip.error_type
    assert "json.decoder.JSONDecodeError" == trip.attributes[semconv.STORE_REJECTED]


class Redirecting(FileCacheManager):  # type: ignore[misc] # untyped
    """Answers with the entry of another key where it has none."""

    def get_group(self, filename: str) -> dict[str, str] | None:
        own: dict[str, str] | None = super().get_group(filename)
        if own is None:
            for folder in sorted(Path(self.cache_dir).parent.iterdir()):
                if (folder / f"__grp__{filename}").exists():
                    paths: dict[str, str] = json.loads((folder / f"__grp__{filename}").read_text())[
                        "child_paths"
                    ]
                    return paths
        return own


@pytest.fixture
def manager() -> Iterator[Any]:
    """What makes Triton use a cache manager."""
    with knobs.cache.scope():

        def use(kind: type) -> None:
            knobs.cache.manager_class = kind

        yield use


def test_an_entry_of_another_key_is_rekeyed(triton_telemetry: Telemetry, manager: Any, restart: Any) -> None:
    kernels.scale[(1,)](floats(64), size=64)
    manager(Redirecting)
    kernels.scale[(1,)](floats(32), size=32)

    compiled, rekeyed = triton_telemetry.trips
    assert (CompilationOutcome.COMPILED, CompilationOutcome.REKEYED) == (compiled.outcome, rekeyed.outcome)
    assert compiled.key != rekeyed.key
    assert compiled.source == rekeyed.source
    assert rekeyed.attributes[semconv.STORE_STORED] is False
    assert f"{Redirecting.__module__}.Redirecting" == rekeyed.attributes[semconv.STORE_KIND]
    assert semconv.STAGE + "ttir" not in rekeyed.attributes


class Shelf(RemoteCacheBackend):  # type: ignore[misc] # untyped
    """A store somewhere else."""

    held: ClassVar[dict[tuple[str, str], bytes]] = {}

    def __init__(self, key: str) -> None:
        self.key = key

    def get(self, filenames: Any) -> dict[str, bytes]:
        return {name: self.held[self.key, name] for name in filenames if (self.key, name) in self.held}

    def put(self, filename: str, data: bytes) -> None:
        self.held[self.key, filename] = data


def test_a_remote_store(
    triton_telemetry: Telemetry, manager: Any, restart: Any, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager(RemoteCacheManager)
    knobs.cache.remote_manager_class = Shelf
    kernels.scale[(1,)](floats(64), size=64)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(store.with_name("other")))
    restart()
    kernels.scale[(1,)](floats(64), size=64)
    Shelf.held.clear()

    compiled, loaded = triton_telemetry.trips
    assert (CompilationOutcome.COMPILED, CompilationOutcome.LOADED) == (compiled.outcome, loaded.outcome)
    assert {"triton.remote"} == {
        compiled.attributes[semconv.STORE_KIND],
        loaded.attributes[semconv.STORE_KIND],
    }


def test_a_cache_manager_that_cannot_be_had(
    triton_telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "no_such_module:Manager")
    with pytest.raises(ImportError):
        kernels.scale[(1,)](floats(64), size=64)

    (trip,) = triton_telemetry.trips
    assert "ModuleNotFoundError" == trip.error_type
    assert semconv.STORE_KIND not in trip.attributes
