"""A signal reaches the program exactly once, whoever sends it, and the program's end is the end of `run`.

The signal that ends the program is sent to us last, so that whatever we pass on comes before it.
"""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from run.launching import OTEL_KERNEL, PROGRAMS, PYTHON, environment

BASH = shutil.which("bash") or "/bin/bash"
PATIENCE = 60.0
"""Seconds after which a test that waits has failed."""

FORWARDED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGWINCH")


def _receiving(*names: str) -> list[str]:
    program = [PYTHON, str(PROGRAMS / "receiving.py"), *names]
    return [OTEL_KERNEL, "run", "--recording", "recording.db", "--", *program]


@contextmanager
def _started(command: list[str], folder: Path) -> Generator[subprocess.Popen[bytes]]:
    """Start a command without a terminal, in a session of its own."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment({"TMPDIR": str(folder)}),  # for what we leave when we are killed
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            _end_session(process)


@contextmanager
def _at_terminal(command: list[str], folder: Path) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    """Start a command as the leader of a terminal's session; yield it and our end of the terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [PYTHON, str(PROGRAMS / "at_terminal.py"), *command],
        cwd=folder,
        env=environment({"PS1": "$ ", "HISTFILE": "", "TMPDIR": str(folder)}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            with suppress(OSError):
                os.close(ours)
            _end_session(process)


def _end_session(leader: subprocess.Popen[bytes]) -> None:
    """Kill what a failed test has left of the session that we started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            session = int(stat.read_text().rpartition(")")[2].split()[3])
            if session == leader.pid:
                os.kill(int(stat.parent.name), signal.SIGKILL)


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


def _await_ready(folder: Path) -> None:
    _await((folder / "received").exists, "the program")


def _received(folder: Path) -> str:
    return (folder / "received").read_text()


def _await_received(folder: Path, names: str) -> None:
    _await(lambda: names == _received(folder), names)


@pytest.mark.parametrize("name", FORWARDED)
def test_signal_to_us_alone_reaches_the_program_once(name: str, tmp_path: Path) -> None:
    with _started(_receiving(name, "SIGPROF"), tmp_path) as process:
        _await_ready(tmp_path)
        process.send_signal(signal.Signals[name])
        _await_received(tmp_path, name)
        process.send_signal(signal.SIGPROF)

        assert 7 == process.wait(PATIENCE)
    assert f"{name} SIGPROF" == _received(tmp_path)


def test_interrupt_key_reaches_the_program_once(tmp_path: Path) -> None:
    with _at_terminal(_receiving("SIGINT", "SIGTERM"), tmp_path) as (process, terminal):
        _await_ready(tmp_path)
        # Held back, so that the program takes the terminal's signal before it could get another from us.
        process.send_signal(signal.SIGSTOP)
        os.write(terminal, b"\x03")
        _await_received(tmp_path, "SIGINT")
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)

        assert 7 == process.wait(PATIENCE)
    assert "SIGINT SIGTERM" == _received(tmp_path)


def test_interrupt_sent_to_us_alone_at_a_terminal_reaches_the_program_once(tmp_path: Path) -> None:
    with _at_terminal(_receiving("SIGINT", "SIGTERM"), tmp_path) as (process, _):
        _await_ready(tmp_path)
        process.send_signal(signal.SIGINT)
        _await_received(tmp_path, "SIGINT")
        process.send_signal(signal.SIGTERM)

        assert 7 == process.wait(PATIENCE)
    assert "SIGINT SIGTERM" == _received(tmp_path)


def test_hangup_of_our_own_terminal_reaches_the_program(tmp_path: Path) -> None:
    with _at_terminal(_receiving("SIGHUP"), tmp_path) as (process, terminal):
        _await_ready(tmp_path)
        os.close(terminal)

        assert 7 == process.wait(PATIENCE)


def test_hangup_of_a_shells_terminal_reaches_the_program(tmp_path: Path) -> None:
    script = " ".join([*_receiving("SIGHUP"), "; echo $? > code"])
    with _at_terminal([BASH, "-c", script], tmp_path) as (shell, terminal):
        _await_ready(tmp_path)
        os.close(terminal)
        shell.wait(PATIENCE)
        _await_received(tmp_path, "SIGHUP")


def test_program_that_signals_its_own_group_gets_it_once(tmp_path: Path) -> None:
    """By a real-time signal, of which two do not become one."""
    with _started(_receiving("--to-group", "SIGRTMIN", "SIGTERM"), tmp_path) as process:
        _await_ready(tmp_path)
        _await_received(tmp_path, "SIGRTMIN")
        process.send_signal(signal.SIGTERM)

        assert 7 == process.wait(PATIENCE)
    assert "SIGRTMIN SIGTERM" == _received(tmp_path)


def test_stop_key_stops_both_and_the_shell_wakes_both(tmp_path: Path) -> None:
    with _at_terminal([BASH, "--norc", "-i"], tmp_path) as (shell, terminal):
        os.write(terminal, " ".join(_receiving("SIGTERM")).encode() + b"\n")
        _await_ready(tmp_path)
        (ours,) = _children(shell.pid)
        (program,) = _children(ours)
        os.write(terminal, b"\x1a")
        _await(lambda: "TT" == _state(ours) + _state(program), "both to stop")
        os.write(terminal, b"fg\n")
        _await(lambda: "T" not in _state(ours) + _state(program), "both to go on")
        os.kill(ours, signal.SIGTERM)
        _await_received(tmp_path, "SIGTERM")
        os.write(terminal, b"exit\n")
        shell.wait(PATIENCE)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _state(pid: int) -> str:
    """Return the letter for what a process does, `T` for stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def _no_signal_is_blocked() -> Iterator[None]:
    """What a program starts with as a rule; chdb blocks SIGPIPE in the thread that imports it, for good."""
    before = signal.pthread_sigmask(signal.SIG_SETMASK, set[int]())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.usefixtures("_no_signal_is_blocked")
@pytest.mark.parametrize("name", ["SIGABRT", "SIGHUP", "SIGINT", "SIGKILL", "SIGPIPE", "SIGSEGV", "SIGTERM"])
def test_death_by_a_signal_is_ours_too(name: str, tmp_path: Path) -> None:
    command = [OTEL_KERNEL, "run", "--level", "off", "--", "sh", "-c", f"kill -{name[3:]} $$"]
    with _started(command, tmp_path) as process:
        assert -signal.Signals[name] == process.wait(PATIENCE)


def test_killing_us_leaves_the_program_alone(tmp_path: Path) -> None:
    with _started(_receiving("SIGTERM"), tmp_path) as process:
        _await_ready(tmp_path)
        (program,) = _children(process.pid)
        process.kill()
        process.wait(PATIENCE)
        os.kill(program, signal.SIGTERM)
        _await_received(tmp_path, "SIGTERM")
