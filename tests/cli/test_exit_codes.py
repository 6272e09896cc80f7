"""Every exit code of the table is one that a command ends with."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from report.shop import BEFORE, LATEST
from written_trips import write_recording

from cli.command import COMMAND, otel_kernel
from otel_kernel.cli.errors import EXIT_CODES, ExitCode


def done(recording: Path) -> int:
    return otel_kernel("report", recording).returncode


def differs(recording: Path) -> int:
    return otel_kernel("diff", "--exit-code", recording).returncode


def does_not_hold(recording: Path) -> int:
    return otel_kernel("check", "--max-compile-seconds", "0", recording).returncode


def cannot_be_told(recording: Path) -> int:
    return otel_kernel("check", "--no-compile-after", "serving", recording).returncode


def needs_attention(_recording: Path) -> int:
    return otel_kernel("doctor", "--runtime", "triton", "--otlp", "http://127.0.0.1:9").returncode


def failed(recording: Path) -> int:
    nothing_done = otel_kernel("report", recording.with_name("no.db")).returncode
    a_part_unread = otel_kernel("report", "-", stdin=b"{oops\n").returncode
    assert nothing_done == a_part_unread
    return nothing_done


def interrupted(_recording: Path) -> int:
    with subprocess.Popen([*COMMAND, "list", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stderr is not None
        program.stdin.write(b"{oops\n")
        program.stdin.flush()
        program.stderr.readline()  # it reads
        program.send_signal(signal.SIGINT)
        return program.wait()


def pipe_closed(recording: Path) -> int:
    with subprocess.Popen([*COMMAND, "report", recording], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.close()
        return program.wait()


CASES: dict[ExitCode, Callable[[Path], int]] = dict(
    zip(
        EXIT_CODES,
        (done, differs, does_not_hold, needs_attention, failed, cannot_be_told, interrupted, pipe_closed),
        strict=True,
    )
)


@pytest.mark.parametrize("case", CASES, ids=[case.__name__ for case in CASES.values()])
def test_a_command_ends_with_the_code(case: ExitCode, tmp_path: Path) -> None:
    recording = write_recording(tmp_path / "r.db", (*BEFORE, *LATEST))

    assert case.code == CASES[case](recording)
