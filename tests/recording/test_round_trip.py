from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from example_trips import a_record, an_unfinished_trip, other_session
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import trips

from otel_kernel import semconv
from otel_kernel.recording.reader import connect_readonly, read_trips
from otel_kernel.recording.writer import RecordingSink
from otel_kernel.records import TextDigest, Trip, TruncatedText, escape

FIVE_MIB = "é" * (5 * 2**19)


def recorded(path: Path, *trips: Trip) -> list[Trip]:
    """Return what a recording gives back for these trips."""
    sink = RecordingSink(path)
    for trip in trips:
        if trip.duration_ns is None:
            sink.started(trip)
        else:
            sink.finished(trip)
    sink.close()
    return list(read_trips(path))


@given(st.lists(trips(), min_size=1, max_size=4, unique_by=lambda trip: trip.session.id))
@settings(deadline=None, max_examples=150)
def test_a_trip_comes_back_as_it_was(written: list[Trip]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        read = recorded(Path(folder) / "r.db", *written)

    assert sorted(written, key=lambda trip: trip.session.id) == sorted(read, key=lambda trip: trip.session.id)


@given(trips(states=("record", "failed", "abandoned")), trips(states=("unfinished",)))
@settings(deadline=None, max_examples=50)
def test_the_end_takes_the_place_of_the_start(end: Trip, start: Trip) -> None:
    start = replace(start, session=end.session, seq=end.seq, parent_seq=end.parent_seq)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.db"
        sink = RecordingSink(path)
        sink.started(start)
        sink.finished(end)
        sink.close()

        assert [end] == list(read_trips(path))


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "\0",
        "a\0b\0",
        escape("\ud800"),
        FIVE_MIB,
        TextDigest.of(""),
        TextDigest.of(FIVE_MIB),
        TruncatedText("", TextDigest.of("ab").sha256, 2),
        TruncatedText("a\0", TextDigest.of(FIVE_MIB).sha256, 2**63 - 1),
    ],
    ids=["none", "empty", "nul", "nuls", "surrogate", "5MiB", "digest-empty", "digest", "cut-all", "cut"],
)
def test_a_text_comes_back_as_it_was(tmp_path: Path, text: str | TextDigest | TruncatedText | None) -> None:
    trip = a_record(ir=text, source=text)

    assert [trip] == recorded(tmp_path / "r.db", trip)


def test_a_digest_stays_one_though_another_trip_brought_its_text(tmp_path: Path) -> None:
    whole = a_record(0, source="text")
    digest = a_record(1, source=TextDigest.of("text"))
    cut = a_record(2, source=TruncatedText("te", TextDigest.of("text").sha256, 4))

    assert [whole, digest, cut] == recorded(tmp_path / "r.db", whole, digest, cut)


def test_a_text_is_kept_once(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    recorded(path, *(a_record(seq, ir="the same", source="the same") for seq in range(5)))
    with closing(connect_readonly(path)) as connection:
        texts = connection.execute("SELECT sha256, text FROM texts").fetchall()

    assert [(TextDigest.of("the same").sha256, "the same")] == texts


def test_a_value_of_another_type_than_its_column_comes_back_as_it_was(tmp_path: Path) -> None:
    trip = a_record(
        attributes={
            semconv.STORE_STORED: "yes",
            semconv.ORIGINAL_NS: "12",
            semconv.TARGET: 90,
            semconv.RANK: True,
            semconv.INTERNAL: 1,
            semconv.STAGE + "parse": "long",
            semconv.KEY_COMPONENT + "flag": 1,
            semconv.KERNEL_NAME: "another",
        }
    )
    (read,) = recorded(tmp_path / "r.db", trip)

    assert trip == read
    assert {name: type(value) for name, value in trip.attributes.items()} == {
        name: type(value) for name, value in read.attributes.items()
    }


def test_bools_come_back_as_bools(tmp_path: Path) -> None:
    trip = a_record(attributes={semconv.STORE_STORED: False, semconv.DEVICE_LOADED: True})
    (read,) = recorded(tmp_path / "r.db", trip)

    assert read.attributes[semconv.STORE_STORED] is False
    assert read.attributes[semconv.DEVICE_LOADED] is True


def test_plain_sql_reads_typed_columns(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    trip = a_record(
        source="a text",
        attributes={
            semconv.STORE_STORED: True,
            semconv.STORE_KIND: "numba.file",
            semconv.ORIGINAL_NS: 5,
            semconv.KEY_COMPONENT + "target": "cpu",
            semconv.STAGE + "lower": 7,
            "compute.kernel.future": "x",
        },
    )
    recorded(path, trip)
    with closing(sqlite3.connect(path)) as connection:
        row = connection.execute(
            "SELECT outcome, store_stored, store_kind, compilation_original_ns, attributes_other, text "
            "FROM records JOIN texts ON texts.sha256 = source_sha256"
        ).fetchone()
        components = connection.execute("SELECT name, value FROM key_components").fetchall()
        stages = connection.execute("SELECT name, duration_ns FROM stages").fetchall()

    assert ("compiled", 1, "numba.file", 5, '{"compute.kernel.future": "x"}', "a text") == row
    assert [("target", "cpu")] == components
    assert [("lower", 7)] == stages


def test_trips_come_by_session_and_seq_and_may_be_those_of_one_run(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    later, earlier = other_session(1), other_session(2)
    written = [
        a_record(1, session=later, started_ns=20),
        a_record(0, session=later, started_ns=21),
        an_unfinished_trip(7, session=earlier, started_ns=10),
    ]
    read = recorded(path, *written)

    assert [written[2], written[1], written[0]] == read
    assert written[2:] == list(read_trips(path, run=earlier.run))
    assert [] == list(read_trips(path, run="0" * 32))


def test_a_session_has_one_run(tmp_path: Path) -> None:
    from otel_kernel.recording.errors import RecordingError
    from otel_kernel.records import Session

    path = tmp_path / "r.db"
    first = a_record(0)
    recorded(path, first)
    moved = Session(id=first.session.id, run="f" * 32)
    with pytest.raises(RecordingError, match="a session has one run"):
        RecordingSink(path).finished(a_record(1, session=moved))

    assert [first] == list(read_trips(path))


def test_reading_sees_one_state_while_writers_write(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    for seq in range(3):
        sink.finished(a_record(seq))
    reading = read_trips(path)
    first = next(reading)
    sink.finished(a_record(3))

    assert [a_record(seq) for seq in range(3)] == [first, *reading]
    assert 4 == len(list(read_trips(path)))
    sink.close()
