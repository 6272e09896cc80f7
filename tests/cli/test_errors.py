"""Bad input is one clear line on standard error and an exit code, never a traceback."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from report.shop import BEFORE, COMPILED, ENDED, LATEST, WEB, a_trip
from written_trips import write_otlp, write_recording

from cli.command import COMMAND, otel_kernel, refusal
from otel_kernel.cli.errors import said

READERS = ("report", "list")


def as_text(path: Path, text: bytes) -> Path:
    path.write_bytes(text)
    return path


@pytest.mark.parametrize("command", READERS)
def test_what_is_no_input_is_refused(command: str, tmp_path: Path) -> None:
    foreign = tmp_path / "other.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE mine (a)")
    text = as_text(tmp_path / "notes.txt", b"hello\n")
    empty = as_text(tmp_path / "empty.db", b"")

    assert (
        f"{tmp_path} is a folder: name a recording, a file of OTLP or of JSON lines, or a CubeCL environment"
        == refusal(command, tmp_path)
    )
    assert "a SQLite file of another program" in refusal(command, foreign)
    assert (
        f"{text} is neither a recording nor a file of OTLP or of JSON lines nor a CubeCL environment"
        == refusal(command, text)
    )
    assert (
        f"{empty} is empty: name a recording, a file of OTLP or of JSON lines, or a CubeCL environment"
        == refusal(command, empty)
    )
    assert (
        f"there is no file {tmp_path}/no.db: name a recording, a file of OTLP or of JSON lines, or a CubeCL environment"
        == refusal(command, tmp_path / "no.db")
    )
    assert f"no file matches {tmp_path}/*.jsonl" == refusal(command, f"{tmp_path}/*.jsonl")


@pytest.mark.parametrize("command", READERS)
def test_a_damaged_recording_is_refused(command: str, tmp_path: Path) -> None:
    trips = [a_trip(WEB, seq, "shop.price", seq, 1, COMPILED) for seq in range(500)]
    path = write_recording(tmp_path / "r.db", trips)
    data = path.read_bytes()
    path.write_bytes(data[:8192] + b"\xff" * (len(data) - 8192))

    done = otel_kernel(command, path)

    assert 2 == done.returncode
    assert 1 == done.stderr.count("\n")
    assert done.stderr.startswith(f"otel-kernel: the recording {path} is damaged")


def test_without_a_recording_a_first_step_is_named(tmp_path: Path) -> None:
    for arguments in (("report",), ("list",), ("show", "shop.price")):
        said_line = refusal(*arguments, variables={"XDG_STATE_HOME": str(tmp_path)})

        assert said_line.startswith(f"there is no recording {tmp_path}/otel-kernel/")
        assert said_line.endswith(" yet: make it with `otel-kernel run -- PROGRAM`, or name an INPUT")


def test_unknown_commands_options_and_values_are_refused(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.db", (*BEFORE, *LATEST))

    assert "No such command" in refusal("repot", path)
    assert "No such option" in refusal("report", "--jsn", path)
    assert "Missing argument 'TRIP'" in refusal("show")
    assert f"no run 9 in {path}: newest first, its runs are {'2' * 32}, {'1' * 32}" == refusal(
        "report", "--run", "9", path
    )
    assert "no run 9 in " in refusal("list", "--run", "9", path)


def test_a_run_that_lines_do_not_have_is_refused(tmp_path: Path) -> None:
    path = write_otlp(tmp_path / "spans.jsonl", ENDED)

    assert f"no run 9 in {path}: newest first, its runs are {'2' * 32}" == refusal(
        "report", "--run", "9", path
    )
    assert f"no run 9 in {path}" == refusal("list", "--run", "9", path)


def test_an_ambiguous_run_is_refused(tmp_path: Path) -> None:
    twin = a_trip(type(WEB)(id="c" * 32, run="2" * 31 + "3"), 0, "shop.price", 0, 1, COMPILED)
    path = write_recording(tmp_path / "r.db", (*LATEST, twin))

    assert refusal("report", "--run", "22", path).startswith(f"run 22 is ambiguous in {path}: ")


def test_a_trip_that_is_not_there_is_refused_with_similar_kernels(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.db", LATEST)

    assert f"no trip aa:99 in {path}" == refusal("show", "aa:99", path)
    assert f"no trip price in {path}; similar kernels: shop.price" == refusal("show", "price", path)
    assert f"no trip shop.prise in {path}; similar kernels: shop.price" in refusal("show", "shop.prise", path)


def test_an_ambiguous_trip_is_refused(tmp_path: Path) -> None:
    twins = [
        a_trip(type(WEB)(id=f"a{number}" * 16, run="2" * 32), 0, "shop.price", 0, 1, COMPILED)
        for number in (1, 2)
    ]
    path = write_recording(tmp_path / "r.db", twins)

    assert f"trip a:0 is ambiguous in {path}: of the sessions {'a1' * 16}, {'a2' * 16}" == refusal(
        "show", "a:0", path
    )


@pytest.mark.parametrize("command", ["report", "list"])
def test_malformed_lines_are_named_and_the_good_ones_count(command: str, tmp_path: Path) -> None:
    path = write_otlp(tmp_path / "spans.jsonl", ENDED[:2])
    first, *rest = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join((first, b"{oops", *rest)))

    done = otel_kernel(command, path)

    assert 2 == done.returncode
    assert (
        f"otel-kernel: {path}:2: malformed JSON: Expecting property name enclosed in double quotes at column 2\n"
        == done.stderr
    )
    assert "shop.price" in done.stdout
    assert "shop.tax" in done.stdout


def test_lines_of_which_none_is_good_are_no_input(tmp_path: Path) -> None:
    path = as_text(tmp_path / "spans.jsonl", b"{oops\n{oops\n")

    done = otel_kernel("list", path)

    assert (2, "") == (done.returncode, done.stdout)
    assert 2 == done.stderr.count("\n")


def test_of_many_problems_the_first_are_said_and_the_others_counted(tmp_path: Path) -> None:
    done = otel_kernel("list", as_text(tmp_path / "spans.jsonl", b"{oops\n" * 50))

    assert [f"otel-kernel: {tmp_path}/spans.jsonl:20: ", "otel-kernel: and 30 problems more"] == [
        done.stderr.splitlines()[19].partition("malformed")[0],
        done.stderr.splitlines()[20],
    ]
    assert 21 == done.stderr.count("\n")


def test_a_session_in_two_runs_is_a_problem_of_the_trip(tmp_path: Path) -> None:
    elsewhere = a_trip(type(WEB)(id=WEB.id, run="9" * 32), 99, "shop.price", 0, 1, COMPILED)
    path = write_otlp(tmp_path / "spans.jsonl", [*ENDED, elsewhere])

    done = otel_kernel("report", path)

    assert 2 == done.returncode
    assert f"otel-kernel: trip 99 of session {WEB.id} says run {'9' * 32}, others {WEB.run}\n" == done.stderr
    assert "\n13 trips: " in done.stdout


@pytest.mark.parametrize("command", ["report", "list"])
def test_a_reader_that_has_seen_enough_is_no_error(command: str, tmp_path: Path) -> None:
    trips = [a_trip(WEB, seq, f"shop.k{seq}", seq, 1, COMPILED) for seq in range(3000)]
    path = write_recording(tmp_path / "r.db", trips[:10])
    if command == "list":
        path = write_otlp(tmp_path / "spans.jsonl", trips, batch=100)

    with subprocess.Popen(
        [*COMMAND, command, "--json", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        said_lines = program.stderr.read()
        code = program.wait()

    assert (141, b"") == (code, said_lines)


def test_a_full_disk_is_said() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE, check=False)

    assert (2, b"otel-kernel: standard output: No space left on device\n") == (done.returncode, done.stderr)


def test_a_fault_of_our_own_is_not_dressed_up_as_bad_input() -> None:
    with pytest.raises(ZeroDivisionError):
        said(ZeroDivisionError())
