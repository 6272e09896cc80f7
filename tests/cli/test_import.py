"""`import`: any INPUT into a recording, as often as one likes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from example_trips import a_record, an_unfinished_trip, other_session
from written_trips import write_otlp, write_recording, write_trips

from cli.command import otel_kernel, refusal
from otel_kernel import semconv
from otel_kernel.recording.reader import read_trips
from otel_kernel.records import Trip

PROCESS = {semconv.PROCESS_PID: 1, semconv.THREAD_ID: 2, semconv.DEVICE_LOADED: True}


def some_trips(session: int) -> list[Trip]:
    records = (a_record(seq, session=other_session(session), ir="ir", attributes=PROCESS) for seq in range(3))
    return [
        replace(trip, trace_id=f"{trip.seq + 1:032x}", span_id=f"{trip.seq + 1:016x}") for trip in records
    ]


def test_trips_of_every_kind_of_input_are_in_the_recording(tmp_path: Path) -> None:
    unfinished = an_unfinished_trip(9, session=other_session(2))
    write_otlp(tmp_path / "a.jsonl", some_trips(1))
    write_recording(tmp_path / "b.db", [*some_trips(2), unfinished])
    write_trips(tmp_path / "c1.jsonl", some_trips(3)[:2])
    write_trips(tmp_path / "c2.jsonl", some_trips(3)[1:])
    lines = "".join(json.dumps(trip.to_json()) + "\n" for trip in some_trips(4))
    target = tmp_path / "all.db"
    names = (tmp_path / "a.jsonl", tmp_path / "b.db", f"{tmp_path}/c*.jsonl", "-")
    done = otel_kernel("import", *names, "--recording", target, stdin=lines.encode())

    assert (0, "") == (done.returncode, done.stderr)
    assert f"13 trips in {target}\n\nLeft out: 1 span that is no trip, 1 duplicate.\n" == done.stdout
    expected = [*some_trips(1), *some_trips(2), unfinished, *some_trips(3), *some_trips(4)]
    assert expected == list(read_trips(target))


def test_an_import_that_is_repeated_changes_nothing(tmp_path: Path) -> None:
    source = write_otlp(tmp_path / "a.jsonl", some_trips(1))
    target = write_recording(tmp_path / "r.db", some_trips(2))
    outputs = [otel_kernel("import", source, "--recording", target).stdout for _ in range(2)]

    assert outputs[0] == outputs[1]
    assert [*some_trips(1), *some_trips(2)] == list(read_trips(target))


def test_what_cannot_be_read_or_contradicts_is_said_and_the_others_count(tmp_path: Path) -> None:
    target = write_recording(tmp_path / "r.db", some_trips(1)[:1])
    other_run = replace(some_trips(1)[1], session=other_session(1, 99))
    source = write_trips(tmp_path / "a.jsonl", [other_run, some_trips(1)[2]])
    source.write_text(source.read_text() + "{oops\n")
    done = otel_kernel("import", source, "--recording", target)

    assert (2, f"1 trip in {target}\n") == (done.returncode, done.stdout)
    first, second = done.stderr.splitlines()
    assert "a session has one run" in first
    assert f"otel-kernel: {source}:3: malformed JSON: " in second
    assert [some_trips(1)[0], some_trips(1)[2]] == list(read_trips(target))


def test_this_process_is_not_taken_for_the_one_that_compiled(tmp_path: Path) -> None:
    source = write_trips(tmp_path / "a.jsonl", [a_record()])  # says nothing of its process
    otel_kernel("import", source, "--recording", tmp_path / "r.db")
    with closing(sqlite3.connect(tmp_path / "r.db")) as connection:
        (row,) = connection.execute("SELECT host, pid, program FROM sessions")

    assert (None, None, None) == row


def test_a_recording_is_not_imported_into_itself(tmp_path: Path) -> None:
    recording = write_recording(tmp_path / "r.db", some_trips(1))
    (tmp_path / "link.db").symlink_to(recording)

    for name in (recording, tmp_path / "link.db"):
        assert f"{recording} would be imported into itself: name another --recording" == refusal(
            "import", name, "--recording", recording
        )


def test_what_is_no_input_makes_no_recording(tmp_path: Path) -> None:
    assert "there is no file" in refusal("import", tmp_path / "no", "--recording", tmp_path / "r.db")
    assert not (tmp_path / "r.db").exists()
