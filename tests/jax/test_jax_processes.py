"""Several processes: peers that share executables, ranks, one folder, children."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from otel_kernel.records import CompilationOutcome, Trip
from otel_kernel.report.opening import opened_recording
from otel_kernel.report.ranks import by_rank

Program = Callable[..., Callable[[], list[Trip]]]


def attribute(trip: Trip, name: str) -> object:
    return trip.attributes.get(f"compute.kernel.{name}")


def _coordinator() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def _peers(program: Program, **variables: str) -> list[list[Trip]]:
    coordinator = _coordinator()
    running = [
        program(
            "peers.py", str(number), "2", coordinator, JAX_CPU_COLLECTIVES_IMPLEMENTATION="gloo", **variables
        )
        for number in range(2)
    ]
    return [ended() for ended in running]


def test_a_peer_loads_what_the_first_process_compiled(program: Program) -> None:
    # The second time each process finds the executable in memory: no trip.
    ((first,), (second,)) = _peers(program, JAX_SHARE_BINARY_BETWEEN_HOSTS="1")

    assert CompilationOutcome.COMPILED is first.outcome
    assert CompilationOutcome.LOADED is second.outcome
    assert first.key == second.key
    assert attribute(first, "identity") == attribute(second, "identity")
    assert attribute(first, "store.kind") is None
    assert attribute(second, "store.kind") == "jax.peer"
    assert attribute(second, "stage.compile") is None
    assert isinstance(attribute(second, "stage.peer"), int)
    assert attribute(second, "compilation.original_ns") is None
    assert [(attribute(trip, "rank"), attribute(trip, "world_size")) for trip in (first, second)] == [
        (0, 2),
        (1, 2),
    ]
    assert attribute(first, "device") == "cpu:0"
    assert attribute(second, "device") != "cpu:0"


def test_only_the_first_process_writes(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    trips = _peers(
        program,
        JAX_COMPILATION_CACHE_DIR=str(folder),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
        JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1",
    )
    writer, other = trips[0][0], trips[1][0]

    assert CompilationOutcome.COMPILED is writer.outcome
    assert attribute(writer, "store.stored") is True
    assert CompilationOutcome.LOADED is trips[0][1].outcome
    if other.outcome is CompilationOutcome.COMPILED:  # it may come late enough to load
        assert attribute(other, "store.stored") is False
        assert attribute(other, "store.reason") == "this is process 1, and only process 0 writes"


def test_an_executable_shared_through_a_folder_is_asked_of_the_folder_first(
    program: Program, tmp_path: Path
) -> None:
    first, second = _peers(
        program,
        JAX_SHARE_BINARY_BETWEEN_HOSTS="1",
        JAX_COMPILATION_CACHE_DIR=str(tmp_path / "store"),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
        JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1",
    )

    # In memory or not: JAX reads the file, so it is a trip.
    assert [trip.outcome.value for trip in first if trip.outcome] == ["compiled", "loaded"]
    assert [trip.outcome.value for trip in second if trip.outcome] == ["loaded", "loaded"]
    assert attribute(second[1], "store.kind") == "jax.file"


def test_two_processes_on_one_folder(program: Program, tmp_path: Path) -> None:
    variables = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "store"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "START": str(tmp_path / "start"),
    }
    running = [program("race.py", **variables) for _ in range(2)]
    together = [ended()[0] for ended in running]
    (later,) = program("race.py", **variables)()

    assert len({trip.key for trip in (*together, later)}) == 1
    assert len({attribute(trip, "identity") for trip in (*together, later)}) == 1
    assert CompilationOutcome.COMPILED in {trip.outcome for trip in together}
    assert CompilationOutcome.LOADED is later.outcome
    compiled = [trip for trip in together if trip.outcome is CompilationOutcome.COMPILED]
    # Both, where neither has seen the entry of the other before it wrote its own.
    assert 1 <= sum(attribute(trip, "store.stored") is True for trip in compiled)
    for trip in compiled:
        if attribute(trip, "store.stored") is False:
            assert str(attribute(trip, "store.reason")) in (
                "there is an entry already",
                "JAX never replaces an entry, and a damaged one is there",  # seen half written
            )


@pytest.mark.parametrize(
    ("shares", "compiled", "loaded"), [(True, [], [0, 1]), (False, [[0, 1]], [0, 0])], ids=["shared", "apart"]
)
def test_a_report_by_rank_tells_who_compiled_and_who_loaded(
    program: Program, tmp_path: Path, shares: bool, compiled: list[list[int]], loaded: list[int]
) -> None:
    recording = tmp_path / "r.db"
    _peers(
        program,
        **({"JAX_SHARE_BINARY_BETWEEN_HOSTS": "1"} if shares else {}),
        OTEL_KERNEL_RECORDING=str(recording),
        OTEL_KERNEL_RUN="5" * 32,
    )
    with opened_recording(recording) as connection:
        ranks = by_rank(connection, None, "r.db")

    assert [(0, 2), (1, 2)] == [(rank.rank, rank.world_size) for rank in ranks.ranks]
    assert compiled == [list(each.compiled) for each in ranks.duplicates]
    assert loaded == [rank.counts.loaded for rank in ranks.ranks]
    # When they wait depends on when they come, but for whom does not.
    assert {(0, (1,)), (1, (0,))} >= {(each.rank, each.waiting) for each in ranks.hold_ups}


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_child_has_a_session_of_its_own(start: str, program: Program) -> None:
    trips = {trip.kernel: trip for trip in program("child.py", start)()}
    parent, child = trips["jit(parent)"], trips["jit(child)"]

    assert parent.session.id != child.session.id
    assert parent.session.run == child.session.run
    assert child.seq == 0
    assert parent.attributes["process.pid"] != child.attributes["process.pid"]
