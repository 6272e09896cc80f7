"""An INPUT gives the same trips whatever it is, each once, and says what is lost."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from example_trips import a_record, an_unfinished_trip, other_session
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import trips
from written_trips import write_otlp, write_recording

from otel_kernel import semconv
from otel_kernel.inputs import InputError, Problem, open_input
from otel_kernel.records import TextDigest, Trip
from otel_kernel.texts import TextFiles

PROCESS = {semconv.PROCESS_PID: 1, semconv.THREAD_ID: 2, semconv.DEVICE_LOADED: True}


def some_records(number: int) -> list[Trip]:
    """Return records as an exporter would give them back, ids included."""
    return [
        replace(a_record(seq, attributes=PROCESS), trace_id=f"{seq + 1:032x}", span_id=f"{seq + 1:016x}")
        for seq in range(number)
    ]


def problems_of(found: Iterable[Trip | Problem]) -> list[str]:
    return [str(each) for each in found if isinstance(each, Problem)]


def test_a_file_of_otlp_json_lines_gives_its_trips_and_counts_other_spans(tmp_path: Path) -> None:
    records = some_records(5)

    found = open_input(write_otlp(tmp_path / "spans.jsonl", records, batch=2))

    assert records == list(found)
    assert (5, 0, 0, 1) == (found.trips, found.problems, found.duplicates, found.other_spans)


def test_a_recording_gives_its_trips(tmp_path: Path) -> None:
    stored = [*some_records(3), an_unfinished_trip(3)]

    found = open_input(write_recording(tmp_path / "r.db", stored))

    assert stored == list(found)
    assert tmp_path / "r.db" == found.recording


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    drawn=st.lists(
        trips(("record", "failed", "abandoned")),
        max_size=3,
        unique_by=lambda trip: (trip.session.id, trip.seq),
    )
)
def test_any_trip_comes_back_from_otlp_json_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Trip]
) -> None:
    drawn = [
        replace(
            trip, trace_id=f"{number + 1:032x}", span_id=f"{number + 1:016x}", started_ns=trip.started_ns or 1
        )
        for number, trip in enumerate(drawn)
    ]
    path = tmp_path_factory.mktemp("drawn") / "spans.jsonl"

    assert drawn == list(open_input(write_otlp(path, drawn)))


def test_standard_input_is_read_as_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = some_records(2)
    data = write_otlp(tmp_path / "spans.jsonl", records).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data + b"{\n")))

    found = list(open_input("-"))

    assert [*records, "standard input:4: malformed JSON: "] == [
        str(each)[:34] if isinstance(each, Problem) else each for each in found
    ]


def test_a_pipe_is_read_once_and_as_it_comes(tmp_path: Path) -> None:
    records = some_records(2)
    lines = write_otlp(tmp_path / "spans.jsonl", records).read_bytes().splitlines(keepends=True)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    first_was_read = threading.Event()

    def write() -> None:
        with pipe.open("wb", buffering=0) as file:
            file.write(lines[0])
            first_was_read.wait(60)
            file.write(b"".join(lines[1:]))

    writer = threading.Thread(target=write)
    writer.start()
    found = iter(open_input(pipe))

    assert records[0] == next(found)

    first_was_read.set()

    assert records[1:] == list(found)

    writer.join()


def test_malformed_lines_are_named_by_number_and_the_good_ones_count(tmp_path: Path) -> None:
    records = some_records(2)
    path = write_otlp(tmp_path / "spans.jsonl", records)
    first, *rest = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join((first, b"{oops", b"", *rest[:-1], b'{"resourceSpans": [')))

    found = open_input(path)
    read = list(found)

    assert records == [each for each in read if isinstance(each, Trip)]
    assert [
        f"{path}:2: malformed JSON: Expecting property name enclosed in double quotes at column 2",
        f"{path}:6: malformed JSON: Expecting value at column 20",
    ] == problems_of(read)
    assert 2 == found.problems


def test_a_line_ends_at_a_newline_only(tmp_path: Path) -> None:
    record = replace(some_records(1)[0], kernel="a\u2028b\x85c\x1cd")
    path = write_otlp(tmp_path / "spans.jsonl", [record])
    raw = path.read_text().replace("\\u2028", "\u2028").replace("\\u0085", "\x85")
    path.write_text(raw, encoding="utf-8")

    assert [record] == list(open_input(path))


def test_a_pattern_gives_the_files_that_match_in_order(tmp_path: Path) -> None:
    records = some_records(4)
    write_otlp(tmp_path / "a.jsonl", records[:2])
    write_recording(tmp_path / "b.jsonl", records[2:3])
    write_otlp(tmp_path / "c.jsonl", records[3:])

    found = open_input(f"{tmp_path}/*.jsonl")

    assert records == list(found)
    assert found.recording is None


def test_a_bad_file_among_several_is_a_problem_and_the_others_count(tmp_path: Path) -> None:
    records = some_records(2)
    write_otlp(tmp_path / "a.jsonl", records)
    (tmp_path / "b.jsonl").write_text("hello\n")
    (tmp_path / "c.jsonl").mkdir()
    recording = write_recording(tmp_path / "d.jsonl", ())
    damaged = write_recording(recording, [a_record()]).read_bytes()
    recording.write_bytes(damaged[:20] + b"\xff" * 200 + damaged[220:])

    read = list(open_input(f"{tmp_path}/*.jsonl"))

    assert records == [each for each in read if isinstance(each, Trip)]
    assert [
        f"{tmp_path}/b.jsonl is neither a recording nor a file of OTLP or of JSON lines nor a CubeCL environment",
        f"{tmp_path}/c.jsonl is a folder: name a recording, a file of OTLP or of JSON lines, or a CubeCL environment",
    ] == problems_of(read)[:2]
    assert str(recording) in problems_of(read)[2]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    records = some_records(1)

    assert records == list(open_input(write_otlp(tmp_path / "spans[1].jsonl", records)))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "missing",
            None,
            "there is no file {}: name a recording, a file of OTLP or of JSON lines, or a CubeCL environment",
        ),
        (
            "empty",
            b"",
            "{} is empty: name a recording, a file of OTLP or of JSON lines, or a CubeCL environment",
        ),
        (
            "picture",
            b"\x89PNG\r\n\x1a\n\0\0",
            "{} is neither a recording nor a file of OTLP or of JSON lines nor a CubeCL environment",
        ),
        ("no*", None, "no file matches {}"),
    ],
)
def test_what_is_no_input_at_all_is_refused(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(InputError) as raised:
        open_input(path)

    assert message.format(path) == str(raised.value)


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = write_otlp(tmp_path / "spans.jsonl", ())
    path.chmod(0)

    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        open_input(path)


def test_a_sqlite_file_of_another_program_is_refused(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE mine (a)")

    with pytest.raises(InputError, match="another program"):
        list(open_input(tmp_path / "other.db"))


def test_a_text_that_is_in_a_text_file_comes_back_whole(tmp_path: Path) -> None:
    text = "define i32 @f\n" * 10_000
    record = replace(some_records(1)[0], source=text)
    path = write_otlp(tmp_path / "spans.jsonl", [record])
    files = TextFiles(tmp_path / "texts")
    files.put(text, TextDigest.of(text).sha256)

    assert [record] == list(open_input(path, texts=files))


def test_a_trip_that_was_delivered_twice_counts_once(tmp_path: Path) -> None:
    records = some_records(3)
    write_otlp(tmp_path / "a.jsonl", records)
    write_otlp(tmp_path / "b.jsonl", records[1:])

    found = open_input(f"{tmp_path}/*.jsonl")

    assert records == list(found)
    assert (3, 2) == (found.trips, found.duplicates)


def test_the_same_number_in_another_session_is_another_trip(tmp_path: Path) -> None:
    records = [
        a_record(0, session=other_session(1), attributes=PROCESS),
        a_record(0, session=other_session(2), attributes=PROCESS),
    ]
    write_otlp(tmp_path / "a.jsonl", records)

    assert 2 == len(list(open_input(tmp_path / "a.jsonl")))


def test_a_finished_trip_takes_the_place_of_an_unfinished_one_before_and_after_it(tmp_path: Path) -> None:
    before, after, alone = (an_unfinished_trip(seq) for seq in (0, 1, 2))
    records = some_records(2)
    write_recording(tmp_path / "1.db", [before, alone])
    write_otlp(tmp_path / "2.jsonl", records)
    write_recording(tmp_path / "3.db", [after, alone])

    found = open_input(f"{tmp_path}/[123].*")

    assert [*records, alone] == list(found)
    assert (3, 3) == (found.trips, found.duplicates)
