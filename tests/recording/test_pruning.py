from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from example_trips import a_record, other_session

from otel_kernel import semconv
from otel_kernel.recording.file import create_or_check
from otel_kernel.recording.processes import ProcessId, current, current_space, is_alive
from otel_kernel.recording.pruning import UNSEEN_NS, prune
from otel_kernel.recording.reader import connect_readonly, read_trips
from otel_kernel.recording.writer import RecordingSink
from otel_kernel.records import TextDigest

GONE = 2**22 + 1
"""A pid beyond the largest that Linux gives."""


def record_runs(path: Path, count: int, *, pid: int = GONE, start: int = 1) -> None:
    """Record runs of one trip each, whose process is gone, the newest with the highest number."""
    sink = RecordingSink(path)
    for number in range(count):
        sink.finished(a_record(session=other_session(number), started_ns=number))
    sink.close()
    set_process(path, pid, current_space(), start)


def set_process(path: Path, pid: int, space: str | None, start: int | None, run: int | None = None) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "UPDATE sessions SET pid = ?, pid_space = ?, process_start = ? WHERE ?4 IS NULL OR run = ?4",
            (pid, space, start, None if run is None else f"{run:032x}"),
        )
        connection.commit()


def runs(path: Path) -> list[int]:
    return [int(trip.session.run, 16) for trip in read_trips(path)]


def test_the_newest_20_runs_stay(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    record_runs(path, 25)

    assert 5 == prune(path)
    assert list(range(5, 25)) == runs(path)
    assert 0 == prune(path)


def test_a_run_with_a_live_process_stays(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    record_runs(path, 5)
    me = current()
    set_process(path, me.pid, me.space, me.start, run=1)

    assert 3 == prune(path, keep=1)
    assert [1, 4] == runs(path)


def test_a_run_stays_while_one_of_its_processes_lives(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    record_runs(path, 2)
    sink = RecordingSink(path)
    child = other_session(100, run=0)
    sink.finished(a_record(session=child, started_ns=0))  # of this process

    assert 0 == prune(path, keep=1)
    sink.close()


def test_a_process_with_the_pid_of_another_does_not_keep_its_run(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    record_runs(path, 3, pid=os.getpid())

    assert 2 == prune(path, keep=1)
    assert [2] == runs(path)


@pytest.mark.parametrize("space", [None, "another boot pid:[1]"])
def test_a_process_that_cannot_be_seen_keeps_its_run_for_a_day(tmp_path: Path, space: str | None) -> None:
    path = tmp_path / "r.db"
    now = time.time_ns()
    sink = RecordingSink(path)
    for number, age in ((0, UNSEEN_NS + 10**9), (1, UNSEEN_NS // 2), (2, 0)):
        sink.finished(a_record(session=other_session(number), started_ns=now - age))
    sink.close()
    set_process(path, os.getpid(), space, 1)

    assert 1 == prune(path, keep=1)
    assert [1, 2] == runs(path)


def test_nothing_of_a_pruned_run_is_left_and_nothing_else_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    for number in range(3):
        sink.finished(
            a_record(
                session=other_session(number),
                started_ns=number,
                ir=f"only of {number}",
                source="of all",
                attributes={semconv.KEY_COMPONENT + "target": "cpu", semconv.STAGE + "lower": number},
            )
        )
    sink.finished(a_record(1, session=other_session(2), source=TextDigest.of("only of 0")))
    sink.close()
    set_process(path, GONE, current_space(), 1)
    kept = [trip for trip in read_trips(path) if trip.session != other_session(0)]

    assert 1 == prune(path, keep=2)
    with closing(connect_readonly(path)) as connection:
        texts = {text for (text,) in connection.execute("SELECT text FROM texts")}
        counts = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("sessions", "trips", "key_components", "stages")
        ]

    assert {"only of 1", "only of 2", "of all"} == texts
    assert [2, 3, 2, 2] == counts
    assert kept == list(read_trips(path))


def test_an_empty_recording_is_pruned_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    create_or_check(path)

    assert 0 == prune(path)


def test_pruning_and_writing_go_on_together(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    record_runs(path, 30)
    sink = RecordingSink(path)
    for seq in range(10):
        sink.finished(a_record(seq, source=f"text {seq}"))
        prune(path, keep=20 - seq)
    sink.close()

    assert [a_record(seq, source=f"text {seq}") for seq in range(10)] == list(read_trips(path, "a" * 32))


def test_a_process_lives_until_it_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        stat = Path(f"/proc/{process.pid}/stat").read_text()
        start = int(stat.rpartition(")")[2].split()[19])
        child = ProcessId(process.pid, current_space(), start)
        alive = is_alive(child)
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        zombie = is_alive(child)
    gone = is_alive(child)

    assert [True, False, False] == [alive, zombie, gone]


def test_a_process_knows_itself() -> None:
    assert os.getpid() == current().pid
    assert is_alive(current()) is True
    assert is_alive(ProcessId(os.getpid(), "another boot pid:[1]", current().start)) is None
    assert is_alive(ProcessId(os.getpid(), None, None)) is None
