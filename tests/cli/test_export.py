"""`export`, and the way back."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from json_schemas import errors
from report.shop import BEFORE, ENDED, UNFINISHED, WEB, a_trip
from written_trips import write_otlp, write_recording

from cli.command import otel_kernel, refusal
from otel_kernel.inputs import open_input
from otel_kernel.records import TextDigest, Trip, TruncatedText

CUT = TextDigest.of("label 0:")
WITH_TEXTS = replace(
    ENDED[0],
    ir="\0label 0:\r\n\u2028",
    source=TruncatedText("label", CUT.sha256, CUT.size),
    trace_id="1" * 32,
    span_id="2" * 16,
)
EVERY = [*BEFORE, WITH_TEXTS, *ENDED[1:], UNFINISHED]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return write_recording(tmp_path / "r.db", EVERY)


def read(path: Path) -> list[Trip]:
    return [each for each in open_input(path) if isinstance(each, Trip)]


def test_what_is_exported_comes_back_as_it_was(recording: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    options = ("--all", "--run", "all", "-o")

    done = otel_kernel("export", recording, *options, first)
    again = otel_kernel("export", first, *options, second)

    assert (0, f"18 trips in {first}\n", "") == (done.returncode, done.stdout, done.stderr)
    assert EVERY == read(first)
    assert first.read_bytes() == second.read_bytes()
    assert (0, "") == (again.returncode, again.stderr)


def test_a_report_on_what_is_exported_is_that_on_the_recording(recording: Path, tmp_path: Path) -> None:
    exported = tmp_path / "trips.jsonl"
    otel_kernel("export", recording, "--all", "--run", "all", "-o", exported)

    for run in ("all", "222"):
        one, two = (otel_kernel("report", "--json", source, "--run", run) for source in (recording, exported))
        expected, found = json.loads(one.stdout), json.loads(two.stdout)
        (known,), (unknown,) = expected["unfinished_trips"], found["unfinished_trips"]
        known["age_ns"] = unknown["age_ns"] = 0

        assert 14 <= expected["trips"]
        assert expected == found


def test_the_records_of_the_latest_run_are_written_to_standard_output(recording: Path) -> None:
    done = otel_kernel("export", recording)
    lines = [json.loads(line) for line in done.stdout.splitlines()]

    assert [] == [error for line in lines for error in errors("trip", line)]
    assert [trip for trip in EVERY if trip.session.run == WEB.run and trip.outcome is not None] == [
        Trip.from_json(line) for line in lines
    ]
    assert (otel_kernel("list", "--json", recording).stdout, "") == (done.stdout, done.stderr)


def test_a_file_that_is_there_is_never_overwritten(recording: Path, tmp_path: Path) -> None:
    output = tmp_path / "trips.jsonl"
    output.write_text("mine")

    assert f"{output} is there already: name a file that is not, or remove it" == refusal(
        "export", recording, "-o", output
    )
    assert "mine" == output.read_text()


def test_only_its_owner_may_read_the_file(recording: Path, tmp_path: Path) -> None:
    otel_kernel("export", recording, "-o", tmp_path / "trips.jsonl")

    assert 0o600 == stat.S_IMODE((tmp_path / "trips.jsonl").stat().st_mode)


def test_a_file_that_does_not_become_whole_is_gone_again(tmp_path: Path) -> None:
    trips = [a_trip(WEB, seq, "shop.price", seq, 1, ENDED[0].outcome) for seq in range(500)]
    damaged = write_recording(tmp_path / "r.db", trips)
    data = damaged.read_bytes()
    damaged.write_bytes(data[: len(data) // 2] + b"\xff" * (len(data) - len(data) // 2))

    assert f"the recording {damaged} is damaged" in refusal("export", damaged, "-o", tmp_path / "trips.jsonl")
    assert not (tmp_path / "trips.jsonl").exists()


def test_a_folder_that_is_not_there_is_one_line(recording: Path, tmp_path: Path) -> None:
    assert f"{tmp_path}/no/trips.jsonl: No such file or directory" == refusal(
        "export", recording, "-o", tmp_path / "no" / "trips.jsonl"
    )


def test_lines_that_are_lost_are_said_and_the_others_written(tmp_path: Path) -> None:
    lines = write_otlp(tmp_path / "spans.jsonl", ENDED[:2]).read_bytes()

    done = otel_kernel("export", "-", "-o", tmp_path / "trips.jsonl", stdin=b"{oops\n" + lines)

    assert (2, f"2 trips in {tmp_path}/trips.jsonl\n") == (done.returncode, done.stdout)
    assert done.stderr.startswith("otel-kernel: standard input:1: malformed JSON: ")
    assert ["shop.price", "shop.tax"] == [trip.kernel for trip in read(tmp_path / "trips.jsonl")]


def test_a_real_recording_comes_back_as_it_was(real_recording: Path, tmp_path: Path) -> None:
    exported = tmp_path / "trips.jsonl"
    otel_kernel("export", real_recording, "--all", "--run", "all", "-o", exported)

    assert 3 * 3 == len(read(exported))
    assert read(real_recording) == read(exported)
