"""`check` and `report --by rank`, on recordings of real ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from json_schemas import errors
from report.shop import BEFORE, LATEST
from written_trips import write_recording

from cli.command import COMMAND, otel_kernel, refusal

PROGRAM = Path(__file__).parent / "programs" / "two_ranks.py"
NOTHING_LATE = ("--no-compile-after", "serving")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of two runs: one that compiles while it serves, then one that does not."""
    folder = tmp_path_factory.mktemp("ranks")
    for how in ("cold", "warm"):
        subprocess.run(
            [*COMMAND, "run", "--recording", folder / "r.db", "--", sys.executable, PROGRAM, how],
            env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "store")},
            capture_output=True,
            check=True,
        )
    return folder / "r.db"


def runs(recording: Path) -> list[str]:
    """Return its runs, the latest first."""
    found = json.loads(otel_kernel("runs", "--json", recording).stdout)["runs"]
    return [run["run"] for run in found]


def test_what_compiles_while_serving_is_an_exit_code(recording: Path) -> None:
    warm, cold = runs(recording)
    kept = otel_kernel("check", *NOTHING_LATE, "--run", warm, recording)
    broken = otel_kernel("check", *NOTHING_LATE, "--run", cold, recording)

    assert (0, "") == (kept.returncode, kept.stderr)
    assert "holds  no compile after serving\n" in kept.stdout
    assert (1, "") == (broken.returncode, broken.stderr)
    assert broken.stdout.startswith("fails  no compile after serving\n       ")
    assert "  2 compiled  " in broken.stdout
    assert "two_ranks.late" in broken.stdout.replace("__main__", "two_ranks")


def test_what_compiles_while_serving_stands_out_in_a_report(recording: Path) -> None:
    warm, cold = runs(recording)

    assert "\nCompiled while serving" in otel_kernel("report", "--run", cold, recording).stdout
    assert "while serving" not in otel_kernel("report", "--run", warm, recording).stdout


def test_all_checks_in_one(recording: Path) -> None:
    warm, _ = runs(recording)
    done = otel_kernel(
        "check", *NOTHING_LATE, "--max-compile-seconds", "0.001", "--min-load-share", "0.1", "--run", warm,
        "--json", recording,
    )  # fmt: skip
    data = json.loads(done.stdout)

    assert (1, "", []) == (done.returncode, done.stderr, errors("check", data))
    assert [True, False, True] == [check["holds"] for check in data["checks"]]
    assert (False, warm) == (data["holds"], data["run"])


def test_what_cannot_be_told_is_no_success(tmp_path: Path) -> None:
    done = otel_kernel("check", *NOTHING_LATE, write_recording(tmp_path / "r.db", LATEST))

    assert (2, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("cannot tell  no compile after serving\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "nothing to check: give --no-compile-after, --max-compile-seconds or --min-load-share"),
        (
            ("--min-load-share", "90"),
            "Invalid value for '--min-load-share': 90.0 is not in the range 0<=x<=1.",
        ),
        (
            (*NOTHING_LATE, "--layer", "tritn"),
            "no trip of layer tritn in {path}: its layers are numba, numba.gufunc",
        ),
    ],
)
def test_what_cannot_be_checked_is_one_line(tmp_path: Path, arguments: tuple[str, ...], line: str) -> None:
    path = write_recording(tmp_path / "r.db", LATEST)

    assert line.format(path=path) == refusal("check", *arguments, path)


def test_an_empty_input_is_no_success() -> None:
    assert "no trips in -: nothing can be checked" == refusal("check", "--max-compile-seconds", "1", "-")


def test_ranks_that_compiled_the_same_are_told(recording: Path) -> None:
    _, cold = runs(recording)
    data = json.loads(otel_kernel("report", "--by", "rank", "--run", cold, "--json", recording).stdout)
    text = otel_kernel("report", "--by", "rank", "--run", cold, recording).stdout

    assert [] == errors("ranks", data)
    assert [(0, 2), (1, 2)] == [(rank["rank"], rank["world_size"]) for rank in data["ranks"]]
    assert [1, 1] == [rank["processes"] for rank in data["ranks"]]
    assert {"price", "late"} == {each["kernel"].rpartition(".")[2] for each in data["duplicate_compilations"]}
    assert {(0, 1)} == {tuple(each["compiled"]) for each in data["duplicate_compilations"]}
    assert text.startswith(f"Run {cold}, 2 ranks\n")
    assert "\nCompiled on several ranks (" in text


def test_ranks_of_several_runs_are_one_line(recording: Path) -> None:
    line = refusal("report", "--by", "rank", "--run", "all", recording)

    assert line.startswith(f"rank 0 is in several runs of {recording}, as ")


def test_a_recording_without_ranks_says_so(tmp_path: Path) -> None:
    done = otel_kernel("report", "--by", "rank", write_recording(tmp_path / "r.db", (*BEFORE, *LATEST)))

    assert (0, "") == (done.returncode, done.stderr)
    assert ": no trip tells a rank.\n" in done.stdout
