"""What cannot be run is answered with one line before anything is started."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from run.launching import OTEL_KERNEL, OURS, PYTHON, environment

_WRITES_A_FILE = ("touch", "started")


def _rejected(folder: Path, *arguments: str, changes: dict[str, str] | None = None) -> str:
    """Return the one line that `otel-kernel run` answers with, after `otel-kernel: `."""
    result = subprocess.run(
        [OTEL_KERNEL, "run", *arguments],
        cwd=folder,
        env=environment({"XDG_STATE_HOME": str(folder / "state"), **(changes or {})}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (2, "") == (result.returncode, result.stdout), result.stderr
    assert 1 == len(result.stderr.splitlines()), result.stderr
    assert result.stderr.startswith(OURS)
    assert not (folder / "started").exists()
    return result.stderr.removeprefix(OURS).rstrip()


def test_unknown_level(tmp_path: Path) -> None:
    line = _rejected(tmp_path, "--level", "most", "--", *_WRITES_A_FILE)

    assert re.search(r"--level.*most.*off.*basic.*full", line)


def test_unknown_level_in_the_environment(tmp_path: Path) -> None:
    line = _rejected(tmp_path, "--", *_WRITES_A_FILE, changes={"OTEL_KERNEL_LEVEL": "most"})

    assert re.search(r"most.*off.*basic.*full", line)


@pytest.mark.parametrize("arguments", [(), ("--",), ("--level", "full")], ids=["nothing", "dashes", "option"])
def test_no_program(arguments: Sequence[str], tmp_path: Path) -> None:
    assert "no program: otel-kernel run -- PROGRAM [ARGS]..." == _rejected(tmp_path, *arguments)


@pytest.mark.parametrize("program", ["no-such-program", "./no-such-file", "./plain.txt", "./folder"])
def test_program_that_cannot_be_executed(program: str, tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("not a program\n")
    (tmp_path / "folder").mkdir()

    line = _rejected(tmp_path, "--", program)

    assert f"{program} is not a program that can be executed: check its path and mode" == line
    assert not (tmp_path / "state").exists()


def test_program_that_the_system_refuses(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)

    assert "./script cannot be started: No such file or directory" == _rejected(tmp_path, "--", "./script")


def _folder(path: Path) -> None:
    path.mkdir()


def _text(path: Path) -> None:
    path.write_text("a text of mine\n" * 100)


def _foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE mine (x)")


def _newer(path: Path) -> None:
    subprocess.run(
        [OTEL_KERNEL, "run", "--recording", path, "--", "true"],
        env=environment(),
        capture_output=True,
        check=True,
    )
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 1000")


def _damaged(path: Path) -> None:
    subprocess.run(
        [OTEL_KERNEL, "run", "--recording", path, "--", "true"],
        env=environment(),
        capture_output=True,
        check=True,
    )
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))


@pytest.mark.parametrize("make", [_folder, _text, _foreign_database, _newer, _damaged])
def test_recording_that_is_not_ours_to_write(make: Callable[[Path], None], tmp_path: Path) -> None:
    recording = tmp_path / "recording.db"
    make(recording)
    before = recording.read_bytes() if recording.is_file() else None

    line = _rejected(tmp_path, "--recording", "recording.db", "--", *_WRITES_A_FILE)

    assert str(recording) in line
    assert before == (recording.read_bytes() if recording.is_file() else None)


@pytest.mark.parametrize("url", ["collector:4318", "ftp://127.0.0.1", "http://", "http://127.0.0.1:port"])
def test_bad_otlp_endpoint(url: str, tmp_path: Path) -> None:
    assert url in _rejected(tmp_path, "--otlp", url, "--", *_WRITES_A_FILE)


def test_otlp_without_an_exporter_names_the_extra(tmp_path: Path) -> None:
    """The SDK is hidden from the interpreter, as if it were not installed."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'opentelemetry.sdk':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Hide())\n"
    )

    line = _rejected(
        tmp_path,
        *("--otlp", "http://127.0.0.1:4318", "--", *_WRITES_A_FILE),
        changes={"PYTHONPATH": str(hidden)},
    )

    assert 'pip install "otel-kernel[otlp]"' in line


def test_option_after_the_program_is_the_programs_own(tmp_path: Path) -> None:
    result = subprocess.run(
        [
            OTEL_KERNEL,
            "run",
            "--level",
            "off",
            PYTHON,
            "-c",
            "import sys; print(sys.argv)",
            "--level",
            "--",
            "x",
        ],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert f"{['-c', '--level', '--', 'x']}\n" == result.stdout
