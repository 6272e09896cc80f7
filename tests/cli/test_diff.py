"""`diff` of two runs in one INPUT and in two, of every kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from json_schemas import errors
from report.shop import BEFORE, COMPILED, EARLIER, ENDED, LATEST, LOADED, WEB, WORKER, a_trip
from written_trips import write_otlp, write_recording, write_trips

from cli.command import otel_kernel, refusal
from otel_kernel.records import Session

NEW = {"shop.price", "shop.tax", "shop.round", "shop.cents", "shop.strange"}


def read_diff(*arguments: str | Path, stdin: bytes = b"", code: int = 0) -> dict[str, Any]:
    done = otel_kernel("diff", "--json", *arguments, stdin=stdin)
    assert (code, "") == (done.returncode, done.stderr)
    data: dict[str, Any] = json.loads(done.stdout)
    assert [] == errors("diff", data)
    return data


def runs_of(data: dict[str, Any]) -> tuple[str | None, str | None]:
    return data["before"]["run"], data["after"]["run"]


def changes(data: dict[str, Any]) -> dict[str, str | None]:
    return {
        entry["kernel"].rpartition(".")[2]: entry["change"]
        for entry in data["kernels"]
        if not entry["internal"]
    }


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return write_recording(tmp_path / "r.db", (*BEFORE, *LATEST))


def test_the_two_latest_runs_of_an_input_are_compared(recording: Path, tmp_path: Path) -> None:
    third = Session(id="9" * 32, run="9" * 32)
    write_recording(recording, [a_trip(third, 0, "shop.price", -20_000, 1, COMPILED)])
    spans = write_otlp(tmp_path / "spans.jsonl", (*BEFORE, *ENDED))

    for data in (
        read_diff(recording),
        read_diff(spans),
        read_diff(f"{tmp_path}/*.jsonl"),
        read_diff("-", stdin=spans.read_bytes()),
    ):
        assert (EARLIER.run, WEB.run) == runs_of(data)
        assert {**dict.fromkeys((name.rpartition(".")[2] for name in NEW), "new"), **STORED} == changes(data)


STORED = {"stock": "outcome", "quick": "outcome", "inner": "outcome"}


def test_runs_are_named_by_how_they_start(recording: Path) -> None:
    assert (WEB.run, EARLIER.run) == runs_of(read_diff(recording, "--before", "22", "--after", "1"))
    assert (EARLIER.run, WEB.run) == runs_of(read_diff(recording, "--before", "11"))
    assert (None, WEB.run) == runs_of(read_diff(recording, "--before", "all"))
    assert "no run 9 in " in refusal("diff", recording, "--after", "9")
    assert f"no earlier run in {recording} to compare with: name one, or a second INPUT" == refusal(
        "diff", recording, "--after", "1"
    )


def test_the_latest_run_of_two_recordings_are_compared(recording: Path, tmp_path: Path) -> None:
    other = write_recording(tmp_path / "other.db", (*BEFORE, *LATEST))
    data = read_diff(recording, other)

    assert (WEB.run, WEB.run) == runs_of(data)
    assert [str(recording), str(other)] == [data[side]["input"] for side in ("before", "after")]
    assert {None} == set(changes(data).values())
    assert (EARLIER.run, WEB.run) == runs_of(read_diff(recording, other, "--before", "1"))


def test_all_of_two_files_of_lines_is_compared(tmp_path: Path) -> None:
    one = write_otlp(tmp_path / "1.jsonl", BEFORE)
    two = write_trips(tmp_path / "2.jsonl", LATEST)

    for data in (read_diff(one, two), read_diff(one, "-", stdin=two.read_bytes())):
        assert (None, None, 4, 14) == (*runs_of(data), data["before"]["trips"], data["after"]["trips"])
        assert "new" == changes(data)["price"]
        assert 1 == data["other_spans"]


def test_a_recording_is_compared_with_lines(recording: Path, tmp_path: Path) -> None:
    data = read_diff(write_trips(tmp_path / "2.jsonl", BEFORE), recording)

    assert (None, WEB.run) == runs_of(data)
    assert "outcome" == changes(data)["stock"]


def test_what_counts_as_another_time_is_an_option(tmp_path: Path) -> None:
    trips = [
        a_trip(WEB, 0, "shop.price", 1000, 130, LOADED),
        a_trip(EARLIER, 0, "shop.price", 0, 100, LOADED),
    ]
    path = write_recording(tmp_path / "r.db", trips)

    assert {"price": "slower"} == changes(read_diff(path))
    assert {} == changes(read_diff(path, "--percent", "31"))
    assert {} == changes(read_diff(path, "--ms", "30.5"))
    assert {"ns": 30_500_000, "share": 0.31} == read_diff(path, "--ms", "30.5", "--percent", "31")[
        "threshold"
    ]
    assert "is not in the range x>=0" in refusal("diff", path, "--percent", "-1")


def test_the_exit_code_tells_of_differences_if_asked(recording: Path, tmp_path: Path) -> None:
    same = write_recording(tmp_path / "same.db", [trip for trip in LATEST if trip.session != WORKER])

    assert 0 == otel_kernel("diff", recording).returncode
    assert 1 == otel_kernel("diff", "--exit-code", recording).returncode
    assert 0 == otel_kernel("diff", "--exit-code", same, same).returncode


def test_parts_of_an_input_that_are_lost_count_more_than_differences(tmp_path: Path) -> None:
    lines = b"{oops\n" + write_otlp(tmp_path / "spans.jsonl", (*BEFORE, *ENDED)).read_bytes()

    done = otel_kernel("diff", "--exit-code", "-", stdin=lines)

    assert 2 == done.returncode
    assert done.stderr.startswith("otel-kernel: standard input:1: malformed JSON: ")
    assert "\nNew (7)\n" in done.stdout
    assert done.stdout.endswith("\nLeft out: 1 span that is no trip, 0 duplicates.\n")


def test_what_cannot_be_compared_is_refused(recording: Path, tmp_path: Path) -> None:
    one_run = write_recording(tmp_path / "one.db", BEFORE)

    assert "two INPUTs at most, got 3: put a pattern in quotes" == refusal(
        "diff", recording, recording, recording
    )
    assert "standard input can be read only once: name one file" == refusal("diff", "-", "-")
    assert f"no earlier run in {one_run} to compare with: name one, or a second INPUT" == refusal(
        "diff", one_run
    )
    assert refusal("diff", variables={"XDG_STATE_HOME": str(tmp_path)}).startswith("there is no recording ")


def test_real_runs_differ_as_they_did(real_recording: Path) -> None:
    runs = json.loads(otel_kernel("runs", "--json", real_recording).stdout)["runs"]
    cold_and_warm = read_diff(real_recording, "--after", runs[1]["run"])
    warm_and_edited = read_diff(real_recording)

    assert {"with_tax": "outcome", "rounded": "outcome"}.items() <= changes(cold_and_warm).items()
    assert {"with_tax": "outcome", "rounded": "outcome"}.items() <= changes(warm_and_edited).items()
    reasons = {entry["kernel"].rpartition(".")[2]: entry["why"] for entry in warm_and_edited["kernels"]}
    assert "store_off" == reasons["discounted"]["reason"]
    for name in ("with_tax", "rounded"):
        assert "source" == reasons[name]["reason"]
        assert "source_digest" in [part["name"] for part in reasons[name]["differing"]]
