"""`report`, `list` and `show` on every kind of INPUT."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from json_schemas import errors
from report.shop import BEFORE, COMPILED, ENDED, LATEST, WEB, WORKER, a_trip
from written_trips import write_otlp, write_recording

from cli.command import otel_kernel, refusal
from otel_kernel import __version__
from otel_kernel.records import TextDigest, Trip
from otel_kernel.texts import TextFiles

TEXT = "define i32 @f\n\tret\n"
RECORDS = [trip for trip in LATEST if trip.outcome is not None]


def by_identity(trips: list[Trip]) -> list[Trip]:
    return sorted(trips, key=lambda trip: (trip.session.id, trip.seq))


def read_list(output: str) -> list[Trip]:
    """Return the trips that `list --json` has printed, each as the schema says."""
    trips: list[Trip] = []
    for line in output.splitlines():
        data = json.loads(line)
        assert [] == errors("trip", data)
        trips.append(Trip.from_json(data))
    return trips


def read_report(*arguments: str | Path) -> dict[str, Any]:
    done = otel_kernel("report", "--json", *arguments)
    assert (0, "") == (done.returncode, done.stderr)
    data: dict[str, Any] = json.loads(done.stdout)
    assert [] == errors("report", data)
    return data


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return write_recording(tmp_path / "r.db", (*BEFORE, *LATEST))


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    return write_otlp(tmp_path / "spans.jsonl", (*BEFORE, *ENDED))


def test_list_prints_the_records_of_the_latest_run(recording: Path) -> None:
    done = otel_kernel("list", "--json", recording)

    assert RECORDS == read_list(done.stdout)
    assert (0, "") == (done.returncode, done.stderr)


def test_list_prints_every_trip_if_asked(recording: Path) -> None:
    assert list(LATEST) == read_list(otel_kernel("list", "--json", "--all", recording).stdout)


def test_list_prints_the_trips_that_ended_as_asked(recording: Path) -> None:
    def listed(*states: str) -> list[Trip]:
        options = [option for state in states for option in ("--state", state)]
        return read_list(otel_kernel("list", "--json", *options, recording).stdout)

    assert [trip for trip in LATEST if trip.state == "failed"] == listed("failed")
    assert [trip for trip in LATEST if trip.state in ("failed", "unfinished")] == listed(
        "unfinished", "failed"
    )
    assert RECORDS == listed("record")


def test_list_prints_the_trips_of_a_trace_in_whichever_run(tmp_path: Path) -> None:
    of_request = replace(BEFORE[1], trace_id="1" * 32)
    recording = write_recording(tmp_path / "r.db", (BEFORE[0], of_request, *LATEST))

    assert [of_request] == read_list(otel_kernel("list", "--json", "--trace", "1" * 32, recording).stdout)
    assert "" == otel_kernel("list", "--trace", "1" * 32, "--run", "222", recording).stdout


def test_list_refuses_what_is_no_trace_and_states_beside_all(recording: Path) -> None:
    assert refusal("list", "--trace", "11", recording) == (
        "Invalid value for --trace: 11 is no id of a trace: 32 lower-case hex digits"
    )
    assert "--all lists every state" in refusal("list", "--all", "--state", "failed", recording)


def test_list_takes_a_run_or_all(recording: Path) -> None:
    assert list(BEFORE) == read_list(otel_kernel("list", "--json", "--run", "11", recording).stdout)
    assert [*BEFORE, *LATEST] == read_list(
        otel_kernel("list", "--json", "--all", "--run", "all", recording).stdout
    )


def test_list_reads_lines_as_well(lines: Path) -> None:
    def without_ids(output: str) -> list[Trip]:
        return [replace(trip, trace_id=None, span_id=None) for trip in read_list(output)]

    every = otel_kernel("list", "--json", "--all", lines).stdout
    latest = otel_kernel("list", "--json", "--all", "--run", "222", lines).stdout
    piped = otel_kernel("list", "--json", "--all", "-", stdin=lines.read_bytes()).stdout

    assert [*BEFORE, *ENDED] == without_ids(every)
    assert list(ENDED) == without_ids(latest)
    assert every == piped


def test_list_is_readable(recording: Path) -> None:
    output = otel_kernel("list", "--all", recording).stdout.splitlines()

    assert "2023-11-14 22:13:20 UTC  compiled          1.00 s  aaaaaaaa:0     shop.price" == output[0]
    assert "2023-11-14 22:13:20 UTC  unfinished                bbbbbbbb:1     shop.slow" == output[-1]


def test_report_prints_a_summary(recording: Path, lines: Path) -> None:
    from_recording = otel_kernel("report", recording)
    from_lines = otel_kernel("report", lines, "--run", "2")

    assert from_recording.stdout.startswith("Run 22222222222222222222222222222222, 2 processes, ")
    assert from_lines.stdout.startswith("Run 22222222222222222222222222222222, 2 processes, ")
    assert from_lines.stdout.endswith("\nLeft out: 1 span that is no trip, 0 duplicates.\n")
    assert (0, "") == (from_lines.returncode, from_lines.stderr)


def test_report_prints_json(recording: Path, lines: Path) -> None:
    latest, every, from_lines = (
        read_report(recording),
        read_report(recording, "--run", "all"),
        read_report(lines),
    )

    assert ("2" * 32, 14) == (latest["run"], latest["trips"])
    assert (None, 18, 2) == (every["run"], every["trips"], every["runs"])
    assert (None, 17, 1) == (from_lines["run"], from_lines["trips"], from_lines["other_spans"])


def test_show_prints_every_field_of_a_trip(tmp_path: Path) -> None:
    trip = a_trip(
        WEB,
        1,
        "shop.price",
        0,
        1234,
        COMPILED,
        parent=0,
        attributes={
            "compute.kernel.key.component.options": "OPT=3",
            "compute.kernel.stage.lowering": 2_000_000,
            "compute.kernel.target": "cpu:znver3",
        },
    )
    trip = replace(trip, ir=TextDigest.of("label"), source=TEXT)

    done = otel_kernel("show", "shop.price", write_recording(tmp_path / "r.db", [trip]))

    assert (
        f"""\
kernel          shop.price
outcome         compiled
duration        1.23 s (1234000000 ns)
started         2023-11-14 22:13:20 UTC (1700000000000000000 ns)
runtime         numba
layer           numba
session         {WEB.id}
run             {WEB.run}
seq             1
parent seq      0

key components
  options         OPT=3

stages
  lowering        2.00 ms

attributes
  target          cpu:znver3
  device_loaded   true
  process.pid     100
  thread.id       1

ir: not kept, 5 bytes, sha256 {TextDigest.of("label").sha256}

source
{TEXT}"""
        == done.stdout
    )
    assert (0, "") == (done.returncode, done.stderr)


def test_show_takes_the_start_of_a_session_and_a_number(recording: Path, lines: Path) -> None:
    for source in (recording, lines):
        shown = json.loads(otel_kernel("show", "--json", "aa:6", source).stdout)

        assert [] == errors("trip", shown)
        assert (WEB.id, 6, "shop.stock") == (shown["session"], shown["seq"], shown["kernel"])


def test_show_takes_a_kernel_for_its_newest_trip(recording: Path) -> None:
    newest = json.loads(otel_kernel("show", "--json", "shop.price", recording).stdout)
    failed = otel_kernel("show", "shop.broken", recording).stdout

    assert (WORKER.id, 0) == (newest["session"], newest["seq"])
    assert "\noutcome         failed\nerror type      numba.core.errors.TypingError\n" in failed


def test_texts_come_from_text_files(tmp_path: Path) -> None:
    text = "x" * 100_000
    path = write_otlp(tmp_path / "spans.jsonl", [replace(ENDED[0], source=text)])
    TextFiles(tmp_path / "texts").put(text, TextDigest.of(text).sha256)

    without = otel_kernel("show", "shop.price", path).stdout
    by_option = otel_kernel("show", "shop.price", path, "--text-files", tmp_path / "texts").stdout
    by_variable = otel_kernel(
        "list", "--json", path, variables={"OTEL_KERNEL_TEXT_FILES": str(tmp_path / "texts")}
    )

    assert f"\nsource: the first 0 of 100000 bytes, sha256 {TextDigest.of(text).sha256}\n" in without
    assert by_option.endswith(f"\nsource\n{text}\n")
    assert text == read_list(by_variable.stdout)[0].source


def test_the_recording_of_this_host_is_the_default(tmp_path: Path) -> None:
    default = tmp_path / "otel-kernel" / f"{os.uname().nodename}.db"
    default.parent.mkdir()
    write_recording(default, LATEST)

    done = otel_kernel("list", "--json", variables={"XDG_STATE_HOME": str(tmp_path)})

    assert RECORDS == read_list(done.stdout)


def test_names_that_the_output_cannot_encode_are_escaped(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.db", [a_trip(WEB, 0, "shop.prix_é", 0, 1, COMPILED)])

    for command in ("report", "list"):
        done = otel_kernel(command, path, variables={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})

        assert (0, "") == (done.returncode, done.stderr)
        assert "shop.prix_\\xe9" in done.stdout


def test_help_and_version() -> None:
    plain, asked, version = otel_kernel(), otel_kernel("--help"), otel_kernel("--version")

    assert plain.stdout == asked.stdout
    assert all(f"\n  {name} " in plain.stdout for name in ("list", "report", "run", "show"))
    assert f"otel-kernel {__version__}\n" == version.stdout
    assert (0, 0, 0) == (plain.returncode, asked.returncode, version.returncode)


def test_reading_does_not_import_the_command_run() -> None:
    import subprocess
    import sys

    asks = "import sys, otel_kernel.cli as c; c.otel_kernel.main(['--version'], standalone_mode=False); print(sorted(m for m in sys.modules if m in ('otel_kernel.cli.run', 'rich', 'opentelemetry', 'wrapt')))"
    output = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True).stdout

    assert "[]" == output.splitlines()[-1]
