"""Disks that are full and disks that cannot be written."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from example_trips import a_record

from otel_kernel.recording.errors import RecordingError
from otel_kernel.recording.file import create_or_check
from otel_kernel.recording.reader import connect_readonly, read_trips
from otel_kernel.recording.writer import RecordingSink


def write(path: Path, *seqs: int) -> None:
    sink = RecordingSink(path)
    for seq in seqs:
        sink.finished(a_record(seq))
    sink.close()


@contextmanager
def mounted(folder: Path, size: str) -> Generator[None, None, None]:
    """Mount a small file system; skip where that is not permitted."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"mounting a tmpfs is not permitted: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def read_only(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)


def test_on_a_full_disk_nothing_is_lost_and_a_smaller_trip_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "small" / "r.db"
    with mounted(path.parent, "1m"):
        sink = RecordingSink(path)
        acknowledged: list[int] = []
        refused = 0
        for seq in range(100):
            text = "x" * 60_000 if seq % 2 else None
            with suppress(RecordingError):
                sink.finished(a_record(seq, source=None if text is None else f"{seq}{text}"))
                acknowledged.append(seq)
                continue
            refused += 1
            if refused == 1:
                sink.finished(a_record(1000))  # small enough for what is left
        with pytest.raises(
            RecordingError, match=r"no space left to write the recording .*: free some"
        ) as error:
            sink.finished(a_record(2000, source="y" * 2_000_000))
        sink.close()
        trips = [trip.seq for trip in read_trips(path)]
        with closing(connect_readonly(path)) as connection:
            integrity = connection.execute("PRAGMA integrity_check").fetchall()

    assert "\n" not in str(error.value)
    assert not error.value.lasting
    assert refused > 1
    assert [*acknowledged, 1000] == trips
    assert [("ok",)] == integrity


def test_a_disk_without_room_for_a_recording_gets_one_line(tmp_path: Path) -> None:
    path = tmp_path / "small" / "r.db"
    with mounted(path.parent, "16k"):
        with pytest.raises(RecordingError, match="no space left to write the recording"):
            write(path, 0)

        assert [] == list(path.parent.iterdir())


def test_a_recording_in_a_read_only_folder_is_read_as_it_lies_there(tmp_path: Path) -> None:
    path = tmp_path / "small" / "r.db"
    with mounted(path.parent, "4m"):
        write(path, *range(50))
        read_only(path.parent)

        assert 50 == len(list(read_trips(path)))
        with pytest.raises(RecordingError, match="cannot be opened or written"):
            write(path, 0)
        with pytest.raises(RecordingError, match="cannot be opened or written"):
            create_or_check(path)
        with pytest.raises(RecordingError, match=r"cannot be made .*Read-only file system"):
            write(path.with_name("new.db"), 0)


def test_rows_in_the_log_are_not_silently_left_out_in_a_read_only_folder(tmp_path: Path) -> None:
    live = tmp_path / "r.db"
    path = tmp_path / "small" / "r.db"
    with mounted(path.parent, "4m"):
        sink = RecordingSink(live)
        sink.finished(a_record())
        for ending in ("", "-wal"):
            subprocess.run(["cp", f"{live}{ending}", path.parent], check=True)
        sink.close()
        read_only(path.parent)
        with pytest.raises(RecordingError, match=r"has its last rows in r.db-wal .*: copy both"):
            next(read_trips(path))
