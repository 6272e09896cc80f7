"""`prune` removes old runs and says so."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from example_trips import a_record, other_session
from json_schemas import errors
from written_trips import write_otlp, write_recording

from cli.command import otel_kernel, refusal
from otel_kernel.recording.reader import read_trips

HOST = os.uname().nodename
GONE = 2**22 + 1
"""Of another process, of which nothing is known: it counts as gone long after its last trip."""


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording of five runs of which the second oldest still runs, each with a text of its own."""
    trips = [
        a_record(
            session=other_session(number),
            started_ns=number,
            source=f"{number}" * 20_000,
            attributes={"process.pid": os.getpid() if number == 1 else GONE},
        )
        for number in range(5)
    ]
    return write_recording(tmp_path / "r.db", trips)


def runs(path: Path) -> list[int]:
    return [int(trip.session.run, 16) for trip in read_trips(path)]


def pruned(*arguments: str | Path) -> dict[str, Any]:
    done = otel_kernel("prune", "--json", *arguments)
    assert (0, "") == (done.returncode, done.stderr)
    data: dict[str, Any] = json.loads(done.stdout)
    assert [] == errors("prune", data)
    return data


def test_old_runs_are_removed_but_for_one_that_lives(recording: Path) -> None:
    size = recording.stat().st_size
    data = pruned(recording, "--keep", "2")

    assert [1, 3, 4] == runs(recording)
    assert [f"{2:032x}", f"{0:032x}"] == data["removed"]
    assert (str(recording), 3, False, size) == tuple(
        data[name] for name in ("recording", "kept", "dry_run", "size_bytes")
    )
    assert 40_000 <= data["free_bytes"] < size


def test_a_dry_run_removes_nothing_and_says_what_would_go(recording: Path) -> None:
    dry = pruned(recording, "--keep", "0", "--dry-run")

    assert [0, 1, 2, 3, 4] == runs(recording)
    assert (True, 1, 0) == (dry["dry_run"], dry["kept"], dry["free_bytes"])
    assert dry["removed"] == pruned(recording, "--keep", "0")["removed"]
    assert [1] == runs(recording)


def test_what_is_removed_is_readable(recording: Path) -> None:
    dry = otel_kernel("prune", recording, "--keep", "3", "--dry-run").stdout
    real = otel_kernel("prune", recording, "--keep", "3").stdout
    again = otel_kernel("prune", recording, "--keep", "3").stdout

    assert f"1 run would be removed, the newest first:\n  {0:032x}\n4 runs in {recording}: " in dry
    assert f"1 run removed, the newest first:\n  {0:032x}\n4 runs in {recording}: " in real
    assert f"No run to remove.\n4 runs in {recording}: " in again
    assert again.endswith("KiB are free\n")


def test_20_runs_of_the_recording_of_this_host_stay_by_default(tmp_path: Path) -> None:
    default = tmp_path / "otel-kernel" / f"{HOST}.db"
    default.parent.mkdir()
    gone = {"process.pid": GONE}
    trips = [
        a_record(session=other_session(number), started_ns=number, attributes=gone) for number in range(22)
    ]
    write_recording(default, [replace(trip, seq=0) for trip in trips])

    done = otel_kernel("prune", variables={"XDG_STATE_HOME": str(tmp_path)})

    assert (0, "") == (done.returncode, done.stderr)
    assert list(range(2, 22)) == runs(default)


def test_what_is_no_recording_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    lines = write_otlp(tmp_path / "spans.jsonl", [a_record()])
    before = lines.read_bytes()

    assert f"{lines} is not a recording: name another file" == refusal("prune", lines)
    assert before == lines.read_bytes()
    assert f"there is no recording {tmp_path}/no.db: name one that `otel-kernel run` wrote" == refusal(
        "prune", tmp_path / "no.db"
    )
    assert not (tmp_path / "no.db").exists()
    assert "is not in the range x>=0" in refusal("prune", "--keep", "-1", lines)
    assert "there is no recording" in refusal("prune", variables={"XDG_STATE_HOME": str(tmp_path)})
