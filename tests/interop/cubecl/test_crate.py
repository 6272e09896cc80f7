"""What CubeCL itself writes and reads, built on its published crates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from cli.command import COMMAND, otel_kernel
from example_trips import a_record, other_session
from otlp.receiver import Receiver

from interop.cubecl.environments import FULL, unpacked
from interop.cubecl.following import Following, found_in
from interop.cubecl.producer import (
    BUILD_SECONDS,
    Programs,
    configure,
    go_on,
    run,
    start,
    wait,
    write_environment,
)
from interop.cubecl.shape import shape_of
from otel_kernel import __version__, semconv
from otel_kernel.cubecl.environment import opened
from otel_kernel.cubecl.reading import read_environment
from otel_kernel.cubecl.trips import number_of
from otel_kernel.inputs import Problem, open_input
from otel_kernel.kinds import Stamped
from otel_kernel.records import CompilationOutcome, KernelCacheKey, Trip, hex128

PROGRAM = Path(__file__).parents[2] / "cli" / "programs" / "shop_kernels.py"

pytestmark = [pytest.mark.timeout(BUILD_SECONDS), pytest.mark.slow]


def reads(built: Programs, environment: Path, expected: object, folder: Path) -> str:
    """Return what CubeCL's reader says if the environment does not hold what is expected."""
    path = folder / "expected.json"
    path.write_text(json.dumps(expected))
    done = subprocess.run(
        [built.reads],
        env={**os.environ, "ENVIRONMENT": str(environment), "EXPECTED": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def as_cubecl_reads(trip: Trip, session: int) -> dict[str, object]:
    """Return a trip in the words of the reader."""
    assert trip.key is not None
    assert trip.outcome is not None
    return {
        "session": str(session),
        "seq": trip.seq,
        "offset": str(trip.started_ns - session),
        "kernel": trip.kernel,
        "id": hex128(trip.key.id),
        "build_id": hex128(trip.key.build_id),
        "ir": trip.ir if isinstance(trip.ir, str) else None,
        "outcome": trip.outcome.value,
        "duration": str(trip.duration_ns),
        "source": trip.source if isinstance(trip.source, str) else None,
    }


def record_a_run(folder: Path) -> Path:
    """Return the recording of one run of a real program."""
    recording = folder / "recording.db"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    subprocess.run(
        [*COMMAND, "run", "--recording", recording, "--level", "full", "--", sys.executable, PROGRAM],
        cwd=folder,
        env={**kept, "NUMBA_CACHE_DIR": str(folder / "store")},
        capture_output=True,
        check=True,
    )
    return recording


def lines_of(path: Path, trips: Iterable[Trip]) -> Path:
    path.write_text("".join(f"{json.dumps(trip.to_json())}\n" for trip in trips))
    return path


@pytest.mark.parametrize("level", ["basic", "full"])
def test_a_fresh_environment_has_the_shape_of_the_committed_one(
    built: Programs, tmp_path: Path, level: str
) -> None:
    fresh = write_environment(built, tmp_path, level)
    committed = unpacked(FULL.replace("full", level), tmp_path / "committed")

    assert shape_of(committed) == shape_of(fresh)


def test_cubecl_reads_our_records_field_by_field(built: Programs, tmp_path: Path) -> None:
    first, second = other_session(5), other_session(3)
    start_ns = 1_700_000_000_123_456_789
    trips = [
        replace(
            a_record(4, session=first, started_ns=start_ns + 7, ir="ir é\0", source=""), duration_ns=2**62
        ),
        replace(
            a_record(2**40, session=first, started_ns=start_ns),
            key=KernelCacheKey(id=2**64, build_id=2**64 - 1),
            outcome=CompilationOutcome.LOADED,
            duration_ns=0,
        ),
        replace(
            a_record(0, session=second, started_ns=start_ns + 10**10),
            key=KernelCacheKey(id=0, build_id=2**128 - 1),
            outcome=CompilationOutcome.REKEYED,
            source="x" * 1_000_000,
        ),
    ]
    done = otel_kernel("export", "--cubecl", tmp_path / "new.db", lines_of(tmp_path / "trips.jsonl", trips))
    starts = {first.id: start_ns, second.id: start_ns + 10**10}
    session = {
        "cubecl_version": f"otel-kernel {__version__}",
        "label": None,
        "process": 0,
        "os": "unknown",
        "arch": "unknown",
    }
    expected = {
        "sessions": [
            {"id": str(ns), "started_unix_ms": ns // 10**6, **session} for ns in sorted(starts.values())
        ],
        "compilations": [
            as_cubecl_reads(trip, starts[trip.session.id])
            for trip in sorted(trips, key=lambda trip: (starts[trip.session.id], trip.seq))
        ],
    }

    assert (0, "") == (done.returncode, done.stderr)
    assert "" == reads(built, tmp_path / "new.db", expected, tmp_path)


def test_cubecl_reads_the_records_of_a_real_run(built: Programs, tmp_path: Path) -> None:
    recording = record_a_run(tmp_path)
    path = tmp_path / "run.db"
    done = otel_kernel("export", "--cubecl", path, recording)
    trips = [trip for trip in open_input(recording) if isinstance(trip, Trip) and trip.key and trip.outcome]
    (pid,) = {trip.attributes[semconv.PROCESS_PID] for trip in trips}
    start_ns = min(trip.started_ns for trip in trips)
    session = {
        "id": str(start_ns),
        "started_unix_ms": start_ns // 10**6,
        "cubecl_version": f"otel-kernel {__version__}",
        "label": PROGRAM.name,
        "process": pid,
        "os": "linux",
        "arch": os.uname().machine,
    }

    assert (0, "") == (done.returncode, done.stderr)
    assert "without a key" in done.stdout
    assert trips
    assert "" == reads(
        built,
        path,
        {"sessions": [session], "compilations": [as_cubecl_reads(trip, start_ns) for trip in trips]},
        tmp_path,
    )


def test_cubecl_reads_what_it_wrote_itself_out_of_our_export(built: Programs, tmp_path: Path) -> None:
    source = unpacked(FULL, tmp_path)
    path = tmp_path / "again.db"
    done = otel_kernel("export", "--cubecl", path, source)
    with opened(source) as environment:
        sessions = [
            {
                "id": str(each.id),
                "started_unix_ms": each.started_unix_ms,
                "cubecl_version": each.cubecl_version,
                "label": each.label,
                "process": each.process,
                "os": each.os,
                "arch": each.arch,
            }
            for each in environment.sessions.values()
        ]
    trips = [each for each in read_environment(source) if isinstance(each, Trip)]
    expected = {
        "sessions": sessions,
        "compilations": [as_cubecl_reads(trip, number_of(trip.session.id) or 0) for trip in trips],
    }

    assert (0, "") == (done.returncode, done.stderr)
    assert "" == reads(built, path, expected, tmp_path)


def test_a_program_goes_on_in_an_environment_that_we_wrote(built: Programs, tmp_path: Path) -> None:
    path = configure(tmp_path)
    path.parent.mkdir()
    trips = [a_record(seq) for seq in range(3)]
    otel_kernel("export", "--cubecl", path, lines_of(tmp_path / "trips.jsonl", trips))
    run(built.first, tmp_path, "scale:2")
    found = [each for each in read_environment(path) if isinstance(each, Trip)]

    assert ["shop.discount"] * 3 + ["producer::scale::Scale"] == [trip.kernel for trip in found]


def test_an_environment_is_read_whole_while_a_program_writes_it(built: Programs, tmp_path: Path) -> None:
    path = configure(tmp_path, "full")
    kernels = 24
    process = start(
        built.first, tmp_path, "scale:1", "line:", *(f"scale:{n}" for n in range(2, kernels + 1)), "line:"
    )
    try:
        wait(process)
        seen = [1]
        go_on(process)
        while seen[-1] < kernels:
            found = list(read_environment(path))

            assert [] == [each for each in found if isinstance(each, Problem)]
            seen.append(sum(isinstance(each, Trip) for each in found))
        assert sorted(seen) == seen
        wait(process)
        go_on(process)
        assert 0 == process.wait(60)
    finally:
        process.kill()
        process.communicate()


def test_an_environment_that_a_program_holds_is_not_exported_to(built: Programs, tmp_path: Path) -> None:
    path = configure(tmp_path)
    trips = lines_of(tmp_path / "trips.jsonl", [a_record()])
    process = start(built.first, tmp_path, "scale:1", "line:")
    try:
        wait(process)
        held = otel_kernel("export", "--cubecl", path, trips)
        path.unlink()
        removed = otel_kernel("export", "--cubecl", path, trips)
    finally:
        process.kill()
        process.communicate()

    assert (2, f"otel-kernel: {path} is there already: name a file that is not, or remove it\n") == (
        held.returncode,
        held.stderr,
    )
    assert 2 == removed.returncode
    assert f"{path}-wal is there: a program may hold {path} open" in removed.stderr
    assert not path.exists()


def stamps_of(records: Iterable[Trip | Stamped]) -> list[tuple[str, int]]:
    """Return what identifies the records, in order."""
    return sorted((each.session.id, each.seq) for each in records)


def test_following_keeps_up_with_programs_that_switch_restart_and_prune(
    built: Programs, tmp_path: Path
) -> None:
    path = configure(tmp_path, keep_sessions=1)
    other = path.with_name("other.db")
    written: dict[tuple[str, int], Trip | Stamped] = {}

    def note() -> None:
        for each in (path, other):
            if each.exists():
                records = [found for found in read_environment(each) if not isinstance(found, Problem)]
                written.update(((found.session.id, found.seq), found) for found in records)

    path.parent.mkdir()
    with Receiver() as receiver:
        following = Following(receiver, path.parent, tmp_path / "state", 0)

        def is_level() -> bool:
            note()
            return sorted(written) == stamps_of(found_in(receiver))

        process = start(
            built.first,
            tmp_path,
            *(
                "scale:1",
                "line:",
                "switch:other",
                "scale:2",
                "line:",
                "switch:shop",
                "mark:again",
                "scale:3",
            ),
            *("end:", "line:"),
        )
        try:
            for _ in range(3):
                wait(process)
                following.until(is_level)
                go_on(process)
            assert 0 == process.wait(60)
            assert 0 == following.end()[0]
            sent = len(receiver.spans)
            following = Following(receiver, path.parent, tmp_path / "state", 0)
            run(built.second, tmp_path, "label:later", "scale:4", "shift:5")
            following.until(is_level)
            assert 0 == following.end()[0]
        finally:
            process.kill()
            process.communicate()
            following.process.kill()
            following.process.communicate()

    arrived = found_in(receiver)
    with opened(path) as environment:
        kept = len(environment.sessions)
    sessions = list(dict.fromkeys(each.session.id for each in arrived))

    assert 1 == kept
    assert 4 == len(sessions)
    assert list(written.values()) == sorted(
        arrived, key=lambda each: list(written).index((each.session.id, each.seq))
    )
    assert len(receiver.spans) - sent == sum(each.session.id == sessions[-1] for each in arrived)
