"""Writers that are killed, that fork and that come all at once, as real processes."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from example_trips import SESSION, other_session

from otel_kernel.recording.file import create_or_check
from otel_kernel.recording.reader import read_trips

TESTS = Path(__file__).parent.parent
PROGRAMS = TESTS / "recording" / "programs"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent)))}

KILLERS = 4
KILLS_EACH = 50


def start(program: str, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(PROGRAMS / program), *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )


def output_of(program: subprocess.Popen[str]) -> str:
    """Wait for the program to end well, and return what it printed."""
    try:
        output, errors = program.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        program.kill()
        raise

    assert "" == errors
    return output


def kill_writers(path: Path, folder: Path, first: int) -> dict[int, list[str]]:
    """Kill writers one after the other, at random moments; return what each had acknowledged."""
    acknowledged: dict[int, list[str]] = {}
    moments = random.Random(first)
    with start("write_until_killed.py", path) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        for number in range(first, first + KILLS_EACH):
            pipe = folder / f"{number}.pipe"
            os.mkfifo(pipe)
            parent.stdin.write(f"{number} {pipe}\n")
            parent.stdin.flush()
            pid = int(parent.stdout.readline())
            with pipe.open() as lines:
                seen = [lines.readline()]
                time.sleep(moments.uniform(0, 0.06))
                os.kill(pid, signal.SIGKILL)
                seen += lines.readlines()
            acknowledged[number] = [line.strip() for line in seen]
        output_of(parent)
    return acknowledged


def test_nothing_acknowledged_is_lost_in_200_kills(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    with ThreadPoolExecutor(KILLERS) as killers:
        waiting = [
            killers.submit(kill_writers, path, tmp_path, first * KILLS_EACH) for first in range(KILLERS)
        ]
        acknowledged = {number: lines for each in waiting for number, lines in each.result().items()}
    with closing(sqlite3.connect(path)) as connection:
        integrity = connection.execute("PRAGMA integrity_check").fetchall()
    states = {(trip.session.id, trip.seq): trip.state for trip in read_trips(path)}
    lost: list[str] = []
    for number, lines in acknowledged.items():
        for line in lines:
            what, seq = line.split()
            state = states.get((other_session(number).id, int(seq)))
            if state is None or (what == "end" and state != "record"):
                lost.append(f"{line} of {number}")

    assert [("ok",)] == integrity
    assert KILLERS * KILLS_EACH == len(acknowledged)
    assert sum(map(len, acknowledged.values())) > 10 * KILLERS * KILLS_EACH, "the writers hardly wrote"
    assert "unfinished" in states.values(), "no kill came between the start and the end of a trip"
    assert [] == lost


def test_a_fork_while_another_thread_writes_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    with start("fork_while_writing.py", path) as program:
        output = output_of(program)
    failed, written = map(int, output.split())
    trips = list(read_trips(path))

    assert 0 == failed
    assert written > 60, "the thread hardly wrote"
    assert list(range(written)) == [trip.seq for trip in trips if trip.session == SESSION]
    assert {other_session(number).id for number in range(60)} == {
        trip.session.id for trip in trips if trip.session != SESSION
    }


def test_a_fork_at_any_step_of_a_write_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    with start("fork_at_every_step.py", path) as program:
        output = output_of(program)
    failed, steps = map(int, output.split())
    trips = list(read_trips(path))

    assert 0 == failed
    assert steps > 30, "the steps were not seen"
    assert list(range(steps + 1)) == [trip.seq for trip in trips if trip.session == SESSION]
    assert list(range(1, steps)) == [trip.seq for trip in trips if trip.session == other_session(1)]


def test_a_program_that_ends_with_an_open_sink_hears_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    with start("end_with_an_open_sink.py", path) as program:
        assert "" == output_of(program)

    assert 0 == program.returncode
    assert 1 == len(list(read_trips(path)))


def leave_out_the_log(path: Path) -> None:
    """Make a recording as a backup leaves it: the first opener turns its log on again."""
    create_or_check(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


BEFORE: dict[str, Callable[[Path], object]] = {
    "no file": lambda path: None,
    "recording": create_or_check,
    "recording from a backup": leave_out_the_log,
}


@pytest.mark.parametrize("before", BEFORE.values(), ids=list(BEFORE))
def test_eight_first_openers_at_once_all_write(tmp_path: Path, before: Callable[[Path], object]) -> None:
    rounds = 15
    with ExitStack() as stack:
        programs = [stack.enter_context(start("open_at_once.py", number)) for number in range(8)]
        for program in programs:
            assert program.stdout is not None
            assert "ready\n" == program.stdout.readline()
        for number in range(rounds):
            path = tmp_path / f"{number}.db"
            before(path)
            for program in programs:
                assert program.stdin is not None
                program.stdin.write(f"{path}\n")
                program.stdin.flush()
            for program in programs:
                assert program.stdout is not None
                assert "done\n" == program.stdout.readline()
        for program in programs:
            output_of(program)
    sessions = [{trip.session.id for trip in read_trips(tmp_path / f"{n}.db")} for n in range(rounds)]

    assert [{other_session(number).id for number in range(8)}] * rounds == sessions
    assert [] == list(tmp_path.glob("*.new")), "files that were to become the recording were left"
