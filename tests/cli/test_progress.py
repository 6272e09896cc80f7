"""A bar is shown on a terminal, once the work takes long, and nothing of it is left."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from example_trips import a_record
from written_trips import write_recording, write_trips

from cli.command import COMMAND, otel_kernel
from otel_kernel.cli import progress
from otel_kernel.inputs import open_input


class Terminal:
    """A terminal of our own, as a file to write to."""

    def __init__(self) -> None:
        self._ours, theirs = os.openpty()
        self.file = os.fdopen(theirs, "w")

    def text(self) -> str:
        """Return what was written to it."""
        self.file.flush()
        os.set_blocking(self._ours, False)
        parts: list[bytes] = []
        while True:
            try:
                parts.append(os.read(self._ours, 65536))
            except BlockingIOError:
                return b"".join(parts).decode()

    def close(self) -> None:
        self.file.close()
        os.close(self._ours)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm")
    opened = Terminal()
    yield opened
    monkeypatch.undo()
    opened.close()


def work_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0)
    monkeypatch.setattr(progress, "_BETWEEN", 0)


def all_of(items: Iterable[int]) -> list[int]:
    return list(progress.shown(items, "counting", lambda: 4))


def test_long_work_has_a_bar_that_is_gone_in_the_end(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_takes_long(monkeypatch)
    monkeypatch.setattr(sys, "stderr", terminal.file)

    assert [0, 1, 2, 3] == all_of(range(4))

    text = terminal.text()
    assert "counting" in text
    assert " 50%" in text
    assert "100%" in text
    assert "\x1b[2K" in text.rpartition("100%")[2]  # the line is erased


def test_short_work_has_no_bar(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal.file)

    assert [0, 1, 2, 3] == all_of(range(4))
    assert "" == terminal.text()


def test_without_a_terminal_nothing_stands_between(monkeypatch: pytest.MonkeyPatch) -> None:
    work_takes_long(monkeypatch)
    items = range(4)
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    assert items is progress.shown(items, "counting", lambda: 4)

    monkeypatch.setattr(sys, "stderr", None)  # closed by whoever started us

    assert items is progress.shown(items, "counting", lambda: 4)


def test_the_bytes_of_an_input_are_counted(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    work_takes_long(monkeypatch)
    monkeypatch.setattr(sys, "stderr", terminal.file)
    records = [a_record(seq) for seq in range(10)]

    assert records == list(progress.reading(open_input(write_trips(tmp_path / "trips.jsonl", records))))

    text = terminal.text()
    assert "reading" in text
    assert " 50%" in text


def test_what_is_said_and_printed_meanwhile_comes_whole(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work_takes_long(monkeypatch)
    monkeypatch.setattr(sys, "stderr", terminal.file)
    for number in progress.shown(range(3), "counting", lambda: 3):
        print(f"[said] {number}", file=sys.stderr)
        print(f"[printed] {number}")
    text = terminal.text()

    assert all(f"[said] {number}" in text for number in range(3))
    assert "printed" not in text
    assert "".join(f"[printed] {number}\n" for number in range(3)) == capsys.readouterr().out


@pytest.mark.parametrize("command", ["report", "export", "prune", "runs"])
def test_on_a_terminal_the_output_is_the_same(command: str, tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.db", [a_record(seq) for seq in range(3)])
    if command in ("report", "runs"):
        path = write_trips(tmp_path / "trips.jsonl", [a_record(seq) for seq in range(3)])
    expected = otel_kernel(command, path).stdout
    theirs = Terminal()
    try:
        done = subprocess.run(
            [*COMMAND, command, path], stdout=subprocess.PIPE, stderr=theirs.file, text=True, check=True
        )

        assert (expected, "") == (done.stdout, theirs.text())
    finally:
        theirs.close()
