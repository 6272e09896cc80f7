from __future__ import annotations

import gc
import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from types import FrameType

import pytest
from example_trips import SESSION, a_record, an_unfinished_trip, other_session

from otel_kernel import semconv
from otel_kernel.recording.errors import RecordingError
from otel_kernel.recording.file import create_or_check
from otel_kernel.recording.reader import connect_readonly, read_trips
from otel_kernel.recording.writer import RecordingSink
from otel_kernel.records import AttributeValue, Trip

_WAL_HEADER = 32
_FRAME_HEADER = 24


def transactions(path: Path) -> int:
    """Count the transactions in the log of a recording that is open: their last frames say so."""
    log = Path(f"{path}-wal").read_bytes()
    page_size = int.from_bytes(log[8:12], "big")
    salts = log[16:24]
    frames = [log[at : at + _FRAME_HEADER] for at in range(_WAL_HEADER, len(log), _FRAME_HEADER + page_size)]
    return sum(frame[8:16] == salts and frame[4:8] != b"\0\0\0\0" for frame in frames)


def test_a_trip_is_exactly_two_transactions(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    attributes: dict[str, AttributeValue] = {
        semconv.STAGE + "lower": 7,
        semconv.KEY_COMPONENT + "target": "cpu",
    }
    for seq in range(20):
        before = transactions(path) if seq else 0
        sink.started(an_unfinished_trip(seq))

        assert before + 1 == transactions(path)
        sink.finished(a_record(seq, source=f"text {seq}", attributes=attributes))

        assert before + 2 == transactions(path)
    sink.close()


def test_a_row_is_there_when_the_call_returns(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    sink.started(an_unfinished_trip())

    assert [an_unfinished_trip()] == list(read_trips(path))
    sink.finished(a_record())

    assert [a_record()] == list(read_trips(path))
    sink.close()


def test_a_start_never_takes_the_place_of_an_end(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    sink.finished(a_record())
    sink.started(an_unfinished_trip())
    sink.close()

    assert [a_record()] == list(read_trips(path))


def test_an_end_written_twice_is_one_trip(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    trip = a_record(attributes={semconv.STAGE + "lower": 7, semconv.KEY_COMPONENT + "target": "cpu"})
    sink = RecordingSink(path)
    sink.finished(a_record(attributes={semconv.STAGE + "parse": 1, semconv.KEY_COMPONENT + "flag": ""}))
    sink.finished(trip)
    sink.close()

    assert [trip] == list(read_trips(path))


def test_a_sink_without_trips_makes_no_file(tmp_path: Path) -> None:
    RecordingSink(tmp_path / "r.db").close()

    assert [] == list(tmp_path.iterdir())


def test_only_the_owner_may_read_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    sink.finished(a_record())

    assert {"r.db": 0o600, "r.db-wal": 0o600, "r.db-shm": 0o600} == {
        file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()
    }
    sink.close()


def test_a_relative_path_means_the_folder_of_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    sink = RecordingSink(Path("r.db"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    sink.finished(a_record())
    sink.close()

    assert [a_record()] == list(read_trips(tmp_path / "r.db"))


def test_a_session_says_which_process_it_was(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    sink.finished(a_record(0, started_ns=17))
    sink.finished(a_record(1, started_ns=18))
    sink.close()
    with closing(connect_readonly(path)) as connection:
        rows = connection.execute(
            "SELECT id, run, started_ns, host, pid, ppid, program, python FROM sessions"
        ).fetchall()

    assert [
        (
            SESSION.id,
            SESSION.run,
            17,
            os.uname().nodename,
            os.getpid(),
            os.getppid(),
            Path(sys.argv[0]).name,
            sys.version.split()[0],
        )
    ] == rows


def test_of_a_process_that_hands_on_its_trips_only_the_session_is_known(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    sink.finished(a_record(attributes={semconv.PROCESS_PID: os.getpid() + 1}))
    sink.close()
    with closing(connect_readonly(path)) as connection:
        rows = connection.execute("SELECT id, host, pid, program, process_start FROM sessions").fetchall()

    assert [(SESSION.id, None, None, None, None)] == rows


def test_nothing_is_kept_alive(tmp_path: Path) -> None:
    sink = RecordingSink(tmp_path / "r.db")

    def record(first: int, count: int) -> int:
        for seq in range(first, first + count):
            sink.started(an_unfinished_trip(seq))
            sink.finished(a_record(seq, source="x" * 100))
        gc.collect()
        return len(gc.get_objects())

    def alive() -> int:
        gc.collect()
        return sum(type(each) is Trip for each in gc.get_objects())

    others = alive()  # of tests that ran in this process before
    before = record(0, 100)
    after = record(100, 10_000)
    kept = alive() - others
    sink.close()

    assert 0 == kept
    assert after - before < 100


def test_threads_share_a_sink(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)

    def write(number: int) -> None:
        for seq in range(50):
            sink.started(an_unfinished_trip(seq, session=other_session(number)))
            sink.finished(a_record(seq, session=other_session(number)))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sink.close()

    assert 200 == sum(trip.state == "record" for trip in read_trips(path))


def at_step(step: int, act: Callable[[], None], write: Callable[[], None]) -> bool:
    """Write, and act at this step of it as a signal handler may; return whether there is such a step."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += 1
        if count == step:
            sys.setprofile(None)
            act()

    sys.setprofile(profile)
    try:
        write()
    finally:
        sys.setprofile(None)
    return count >= step


def test_a_signal_handler_may_record_at_any_step_of_a_write(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    sink.finished(a_record(0))
    step = 1
    while at_step(
        step,
        partial(sink.finished, a_record(step, session=other_session(1))),
        partial(sink.finished, a_record(step)),
    ):
        step += 1
    sink.close()
    trips = list(read_trips(path))

    assert step > 30, "the steps were not seen"
    assert list(range(step + 1)) == [trip.seq for trip in trips if trip.session == SESSION]
    assert list(range(1, step)) == [trip.seq for trip in trips if trip.session == other_session(1)]


def test_an_interrupt_at_any_step_of_a_write_leaves_the_sink_usable(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    sink.finished(a_record(0))

    def interrupt() -> None:
        raise KeyboardInterrupt

    step = 1
    kept = {0}
    while True:
        try:
            if not at_step(step, interrupt, partial(sink.finished, a_record(step))):
                break
        except KeyboardInterrupt:
            step += 1
        else:
            raise AssertionError("the interrupt went missing")
        sink.finished(a_record(1000 + step))
        kept.add(1000 + step)
    sink.close()

    assert step > 30, "the steps were not seen"
    assert kept <= {trip.seq for trip in read_trips(path)}


def test_a_recording_that_was_replaced_is_given_up_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    sink.finished(a_record(0))
    path.rename(tmp_path / "moved.db")
    path.write_bytes(b"of somebody else")
    for seq in (1, 2):
        with pytest.raises(RecordingError, match="was removed or replaced") as error:
            sink.finished(a_record(seq))

        assert error.value.lasting
        assert "\n" not in str(error.value)
    sink.close()

    assert b"of somebody else" == path.read_bytes()


@pytest.mark.timeout(60)
def test_a_lock_that_is_never_given_back_is_waited_for_once(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    sink.finished(a_record(0))
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        for seq in range(1, 20):  # each waiting for ten seconds would take minutes
            with pytest.raises(RecordingError, match="is locked by another process"):
                sink.finished(a_record(seq))
        holder.execute("ROLLBACK")
    sink.finished(a_record(20))
    sink.close()

    assert [0, 20] == [trip.seq for trip in read_trips(path)]


def test_a_lock_at_the_first_opening_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    create_or_check(path)
    # Without a log, as a backup leaves it, SQLite itself does not wait: it refuses at once.
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as holder:
        holder.execute("PRAGMA journal_mode = DELETE")
        holder.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.3, lambda: holder.execute("ROLLBACK"))
        release.start()
        sink = RecordingSink(path)
        sink.finished(a_record())
        release.join()
    sink.close()

    assert [a_record()] == list(read_trips(path))


def test_a_forked_child_writes_its_own_session(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    sink.finished(a_record(0))
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            sink.finished(a_record(0, session=other_session(1)))
            status = 0
        finally:
            os._exit(status)

    assert 0 == os.waitpid(pid, 0)[1]
    sink.finished(a_record(1))
    sink.close()
    with closing(connect_readonly(path)) as connection:
        pids = dict(connection.execute("SELECT id, pid FROM sessions"))

    assert {SESSION.id: os.getpid(), other_session(1).id: pid} == pids
    assert 3 == len(list(read_trips(path)))
