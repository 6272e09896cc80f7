"""A program under `otel-kernel run` reads, writes, traces and ends as it does alone."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from run.launching import OTEL_KERNEL, PROGRAMS, PYTHON, environment, our_lines, recorded, run

# Not text in any encoding, and longer than a pipe holds.
DATA = bytes(range(256)) * 1000


def test_input_and_output_are_the_programs_own(tmp_path: Path) -> None:
    script = "tee /dev/stderr"
    result = subprocess.run(
        [OTEL_KERNEL, "run", "--recording", "recording.db", "--", "sh", "-c", script],
        cwd=tmp_path,
        env=environment(),
        input=DATA,
        capture_output=True,
        timeout=60,
        check=True,
    )

    assert DATA == result.stdout
    assert result.stderr.startswith(DATA)
    assert 1 == len(our_lines(result.stderr.removeprefix(DATA).decode()))


_MASKS = re.compile(r"^(SigBlk|SigIgn|SigCgt):\t([0-9a-f]+)$", re.MULTILINE)
_OF_THE_C_LIBRARY = 1 << 31 | 1 << 32
"""Signals 32 and 33, which no program may use, and which glibc sets as it likes when it starts one."""


@pytest.mark.parametrize("level", ["off", "basic"])
def test_signal_masks_and_open_files_are_the_programs_own(level: str, tmp_path: Path) -> None:
    """As are those that our own interpreter changes for itself, and those that it would not hand on."""
    reading, writing = os.pipe()
    script = f"cat /proc/self/status; ls /proc/self/fd; echo inherited >&{writing}"
    command = ["bash", "-c", script]
    found: list[tuple[dict[str, int], str]] = []
    for launcher in ([], [OTEL_KERNEL, "run", "--level", level, "--recording", "recording.db", "--"]):
        result = subprocess.run(
            [*launcher, *command],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=[writing],
            text=True,
            timeout=60,
            check=True,
        )
        masks = {name: int(mask, 16) & ~_OF_THE_C_LIBRARY for name, mask in _MASKS.findall(result.stdout)}
        found.append((masks, result.stdout.partition("nonvoluntary")[2].partition("\n")[2]))
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        inherited = pipe.read()

    assert 3 == len(found[0][0])
    assert found[0] == found[1]
    assert b"inherited\n" * 2 == inherited


@pytest.mark.parametrize("code", [0, 1, 2, 42, 127, 255])
def test_exit_code_is_the_programs_own(code: int, tmp_path: Path) -> None:
    result = run(["sh", "-c", f"exit {code}"], tmp_path)

    assert code == result.returncode


def test_level_off_starts_the_program_alone(tmp_path: Path) -> None:
    code = "import os, sys; print(sorted(n for n in os.environ if n.startswith(('OTEL', 'PYTHON'))))\n"
    code += "print([name for name in sys.modules if name.startswith('otel')])"
    result = run([PYTHON, "-c", code], tmp_path, options=["--level", "off"])

    assert ["['OTEL_KERNEL_LEVEL', 'PYTHONDONTWRITEBYTECODE']", "[]"] == result.stdout.splitlines()
    assert "" == result.stderr
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", ">&- 2>&-", "2> >(exec true)"])
@pytest.mark.parametrize("program", ["exit 3", "echo output; exit 3"])
def test_streams_that_take_nothing_change_no_exit_code(
    program: str, redirection: str, tmp_path: Path
) -> None:
    command = f"'{OTEL_KERNEL}' run --recording recording.db -- sh -c '{program}' {redirection}"
    result = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )

    assert 3 == result.returncode
    expected = "output\n" if "output" in program and ">&- 2" not in redirection else ""
    assert expected == result.stdout


def test_run_inside_a_run_records_to_its_own_recording(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    program = [PYTHON, str(PROGRAMS / "kernels.py")]
    command = [OTEL_KERNEL, "run", "--recording", str(inner / "recording.db"), "--", *program]
    result = run([PYTHON, "-c", f"import subprocess; subprocess.run({command})"], tmp_path)

    assert "compiled kernel\n" == result.stdout
    assert [("kernel",)] == recorded(inner)
    assert [] == recorded(tmp_path)


def test_spans_of_a_program_with_its_own_provider_stay_as_they_are(tmp_path: Path) -> None:
    """It samples none of ours, and all of ours are recorded."""
    command = [PYTHON, str(PROGRAMS / "own_provider.py")]
    alone = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=True)
    under = run(command, tmp_path)

    assert "'important'" in alone.stdout
    assert alone.stdout == under.stdout
    assert [("kernel",)] == recorded(tmp_path)
    assert [] == our_lines(under.stderr)
