"""What `export --cubecl` writes, byte by byte, and where it does not write."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from cli.command import otel_kernel, refusal
from example_trips import a_record, an_unfinished_trip, other_session

from interop.cubecl.environments import NAMES, standalone
from otel_kernel import semconv
from otel_kernel.cubecl.decoding import CubeclSession
from otel_kernel.cubecl.reading import read_environment
from otel_kernel.cubecl.writing import record_value, row_key, row_value, session_value
from otel_kernel.records import (
    Abandoned,
    CompilationOutcome,
    CompilationRecord,
    KernelCacheKey,
    TextDigest,
    Trip,
    TruncatedText,
)

SESSION = 2**64 - 1


def lines_of(path: Path, trips: Iterable[Trip]) -> Path:
    path.write_text("".join(f"{json.dumps(trip.to_json())}\n" for trip in trips))
    return path


def a_compilation(key: KernelCacheKey, ir: str | None = None) -> CompilationRecord:
    return CompilationRecord(
        kernel="shop::scale::Scale",
        key=key,
        ir=ir,
        outcome=CompilationOutcome.REKEYED,
        duration=2_000_000_001,
        source=None,
    )


def test_a_row_has_the_bytes_that_cubecl_writes() -> None:
    key = KernelCacheKey(id=2**64, build_id=2**64 - 1)
    record = a_compilation(key, "é")
    expected = (
        b"\xa2"
        b"\x65stamp\xa3\x67session\x1b\xff\xff\xff\xff\xff\xff\xff\xff\x63seq\x03"
        b"\x66offset\xa2\x64secs\x01\x65nanos\x1a\x07\x5b\xcd\x15"
        b"\x66record\xa6\x66kernel\x72shop::scale::Scale"
        b"\x63key\xa2\x62id\xc2\x49\x01\x00\x00\x00\x00\x00\x00\x00\x00"
        b"\x68build_id\x1b\xff\xff\xff\xff\xff\xff\xff\xff"
        b"\x62ir\x62\xc3\xa9\x67outcome\x67Rekeyed"
        b"\x68duration\xa2\x64secs\x02\x65nanos\x01\x66source\xf6"
    )

    assert expected == row_value(SESSION, 3, 1_123_456_789, record_value(record, key))
    assert b"\x82\x1b\xff\xff\xff\xff\xff\xff\xff\xff\x18\x2a" == row_key(SESSION, 42)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "00"),
        (2**63, "1b8000000000000000"),
        (2**64 - 1, "1bffffffffffffffff"),
        (2**64, "c249010000000000000000"),
        (2**128 - 1, "c250ffffffffffffffffffffffffffffffff"),
    ],
)
def test_an_integer_of_a_key_has_the_bytes_that_cubecl_writes(number: int, expected: str) -> None:
    key = KernelCacheKey(id=number, build_id=0)

    assert f"626964{expected}686275696c645f696400" in record_value(a_compilation(key), key).hex()


def test_a_session_has_the_bytes_that_cubecl_writes() -> None:
    session = CubeclSession(
        id=2**63,
        started_unix_ms=1_700_000_000_123,
        cubecl_version="0.12.0",
        label=None,
        process=4711,
        os="linux",
        arch="x86_64",
        other={},
    )

    assert (
        b"\xa7\x62id\x1b\x80\0\0\0\0\0\0\0\x6fstarted_unix_ms\x1b\0\0\x01\x8b\xcf\xe5\x68\x7b"
        b"\x6ecubecl_version\x660.12.0\x65label\xf6\x67process\x19\x12\x67\x62os\x65linux\x64arch\x66x86_64"
    ) == session_value(session)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("0.11")])
def test_what_cubecl_wrote_is_written_again_byte_by_byte(tmp_path: Path, name: str) -> None:
    path = standalone(name, tmp_path)
    again = tmp_path / "again.db"
    done = otel_kernel("export", "--cubecl", again, path)
    select = "SELECT * FROM entries WHERE namespace IN ('records/v1/compilation', 'records/v1/sessions') ORDER BY 1, 2"
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(again)) as new:
        expected, found = old.execute(select).fetchall(), new.execute(select).fetchall()

    assert (0, "") == (done.returncode, done.stderr)
    assert expected
    assert expected == found


def test_trips_come_back_as_they_were(tmp_path: Path) -> None:
    trips = [
        replace(a_record(seq, session=other_session(1), ir="ir", source="source"), outcome=outcome, ir=ir)
        for seq, (outcome, ir) in enumerate(
            [
                (CompilationOutcome.COMPILED, "ir"),
                (CompilationOutcome.LOADED, None),
                (CompilationOutcome.REKEYED, ""),
            ]
        )
    ]
    otel_kernel("export", "--cubecl", tmp_path / "new.db", lines_of(tmp_path / "t.jsonl", trips))
    found = [each for each in read_environment(tmp_path / "new.db") if isinstance(each, Trip)]

    assert [trip.record for trip in trips] == [trip.record for trip in found]
    assert [(trip.seq, trip.started_ns) for trip in trips] == [(trip.seq, trip.started_ns) for trip in found]


def test_what_cubecl_has_no_place_for_is_left_out_and_counted(tmp_path: Path) -> None:
    record = a_record()
    trips = [
        record,
        replace(a_record(1), key=None, attributes={semconv.KEY_ABSENT_REASON: "disabled"}),
        replace(a_record(2), outcome=None, error_type="ValueError"),
        replace(a_record(3), outcome=None, abandoned=Abandoned.NESTED),
        an_unfinished_trip(4),
        replace(
            a_record(5), ir=TextDigest.of("ir"), source=TruncatedText("a", TextDigest.of("ab").sha256, 2)
        ),
    ]
    done = otel_kernel("export", "--cubecl", tmp_path / "new.db", lines_of(tmp_path / "t.jsonl", trips))

    assert [
        f"2 records of 1 session in {tmp_path}/new.db",
        "Left out 4 trips that CubeCL has no place for: 1 abandoned, 1 failed, 1 unfinished, 1 without a key.",
        "Without 2 texts, of which INPUT holds a digest or a part.",
    ] == done.stdout.splitlines()


def test_a_session_starts_with_its_earliest_trip_wherever_that_stands(tmp_path: Path) -> None:
    trips = [a_record(1, started_ns=2_000), a_record(0, started_ns=1_000)]
    otel_kernel("export", "--cubecl", tmp_path / "new.db", lines_of(tmp_path / "t.jsonl", trips))
    found = [each for each in read_environment(tmp_path / "new.db") if isinstance(each, Trip)]

    assert [(0, 1_000), (1, 2_000)] == [(trip.seq, trip.started_ns) for trip in found]


def test_two_sessions_that_start_together_stay_two(tmp_path: Path) -> None:
    trips = [a_record(0, session=other_session(number)) for number in range(3)]
    otel_kernel("export", "--cubecl", tmp_path / "new.db", lines_of(tmp_path / "t.jsonl", trips))
    found = [each for each in read_environment(tmp_path / "new.db") if isinstance(each, Trip)]

    assert 3 == len({trip.session.id for trip in found})
    assert {trips[0].started_ns} == {trip.started_ns for trip in found}


@pytest.mark.parametrize("beside", ["", "-wal", "-tshm"])
def test_nothing_is_written_where_something_is(tmp_path: Path, beside: str) -> None:
    path = tmp_path / "old.db"
    (tmp_path / f"old.db{beside}").write_bytes(b"precious")
    lines = lines_of(tmp_path / "t.jsonl", [a_record()])

    assert str(tmp_path / f"old.db{beside}") in refusal("export", "--cubecl", path, lines)
    assert {f"old.db{beside}", "t.jsonl"} == {each.name for each in tmp_path.iterdir()}
    assert b"precious" == (tmp_path / f"old.db{beside}").read_bytes()


def test_nothing_is_left_of_an_export_that_fails(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("nothing of the kind")

    assert "neither a recording" in refusal("export", "--cubecl", tmp_path / "new.db", text)
    assert "cannot be made" in refusal(
        "export", "--cubecl", tmp_path / "no" / "new.db", lines_of(tmp_path / "t.jsonl", [a_record()])
    )
    assert {"notes.txt", "t.jsonl"} == {each.name for each in tmp_path.iterdir()}


@pytest.mark.parametrize("option", [("--all",), ("--output", "lines.jsonl")])
def test_an_environment_is_the_only_thing_that_an_export_writes(
    tmp_path: Path, option: tuple[str, ...]
) -> None:
    lines = lines_of(tmp_path / "t.jsonl", [a_record()])

    assert "--cubecl goes with neither --output nor --all" == refusal(
        "export", "--cubecl", tmp_path / "new.db", *option, lines
    )
