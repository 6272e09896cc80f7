"""The recording is looked at where `run` would write it, and nothing is changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from example_trips import a_record, other_session
from written_trips import write_recording

from otel_kernel.doctor.findings import Finding, State
from otel_kernel.doctor.places import can_be_written
from otel_kernel.doctor.recordings import look


def the_finding() -> Finding:
    (finding,) = look()
    return finding


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OTEL_KERNEL_RECORDING", str(tmp_path / "r.db"))
    return tmp_path / "r.db"


def test_a_recording_that_is_not_there_yet_can_be_made(path: Path) -> None:
    finding = the_finding()

    assert (State.WELL, str(path)) == (finding.state, finding.name)
    assert {"exists": False, "writable": True} == finding.facts
    assert not path.exists()


def test_a_recording_is_told_with_its_runs_and_size(path: Path) -> None:
    write_recording(path, [a_record(session=other_session(number)) for number in range(3)])
    finding = the_finding()

    assert State.WELL == finding.state
    assert {
        "exists": True,
        "writable": True,
        "runs": 3,
        "bytes": path.stat().st_size,
        "tables": 1,
    } == finding.facts
    assert finding.text.startswith("3 runs, ")


def test_the_default_is_that_of_this_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_KERNEL_RECORDING", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    assert f"{tmp_path}/otel-kernel/{os.uname().nodename}.db" == the_finding().name


def test_a_damaged_recording_needs_attention_and_is_left_as_it_is(path: Path) -> None:
    write_recording(path, [a_record(seq) for seq in range(300)])
    data = path.read_bytes()
    damaged = data[:8192] + b"\xff" * (len(data) - 8192)
    path.write_bytes(damaged)
    finding = the_finding()

    assert State.ATTENTION == finding.state
    assert finding.text.startswith(f"the recording {path} is damaged (")
    assert damaged == path.read_bytes()


def test_another_file_in_its_place_needs_attention(path: Path) -> None:
    path.write_text("mine")

    assert (State.ATTENTION, f"{path} is not a recording: name another file") == (
        the_finding().state,
        the_finding().text,
    )


def test_a_place_that_cannot_be_written_needs_attention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OTEL_KERNEL_RECORDING", str(tmp_path / "file" / "r.db"))
    finding = the_finding()

    assert (State.ATTENTION, "cannot be written") == (finding.state, finding.text)
    assert {"exists": False, "writable": False} == finding.facts


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_folder_without_permission_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    assert not can_be_written(tmp_path / "r.db")
    tmp_path.chmod(0o700)
    assert can_be_written(tmp_path / "r.db")
