from __future__ import annotations

import gzip
import hashlib
import os
import threading
import tracemalloc
from pathlib import Path

import pytest

from otel_kernel.records import TextDigest
from otel_kernel.texts import TextFiles

TEXTS = ["", "a\0b", "é\U0001f600", "line\r\nline\r", "x" * 5_000_000]


def put(files: TextFiles, text: str) -> TextDigest:
    digest = TextDigest.of(text)
    files.put(text, digest.sha256)
    return digest


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:8]))
def test_a_text_comes_back_by_its_digest(tmp_path: Path, text: str) -> None:
    files = TextFiles(tmp_path / "new" / "texts")
    digest = put(files, text)

    assert text == files.get(digest.sha256, digest.size)


def test_a_text_is_one_gzip_file_that_others_can_read(tmp_path: Path) -> None:
    digest = put(TextFiles(tmp_path), "define i32 @f")
    expected = tmp_path / digest.sha256[:2] / f"{digest.sha256}.gz"

    assert [expected] == [path for path in tmp_path.rglob("*") if path.is_file()]
    assert b"define i32 @f" == gzip.decompress(expected.read_bytes())


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    files = TextFiles(tmp_path / "texts")
    digest = put(files, "secret kernel")
    path = files.path(digest.sha256)

    assert 0o600 == path.stat().st_mode & 0o777
    assert 0o700 == path.parent.stat().st_mode & 0o777


def test_a_text_that_is_there_is_left_alone(tmp_path: Path) -> None:
    files = TextFiles(tmp_path)
    digest = put(files, "text")
    before = files.path(digest.sha256).stat()
    put(files, "text")
    after = files.path(digest.sha256).stat()

    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_two_folders_hold_the_same_bytes_for_the_same_text(tmp_path: Path) -> None:
    first, second = TextFiles(tmp_path / "1"), TextFiles(tmp_path / "2")
    digest = put(first, "text" * 1000)
    put(second, "text" * 1000)

    assert first.path(digest.sha256).read_bytes() == second.path(digest.sha256).read_bytes()


def test_an_unknown_text_is_none(tmp_path: Path) -> None:
    digest = TextDigest.of("never put")

    assert TextFiles(tmp_path).get(digest.sha256, digest.size) is None
    assert TextFiles(tmp_path / "missing").get(digest.sha256, digest.size) is None


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"not gzip",
        gzip.compress(b"define i32 @f")[:-4],
        gzip.compress(b"define i32 @f")[:15],
        gzip.compress(b"define i32 @g"),
        gzip.compress(b"define i32 @f and more"),
        gzip.compress(b"define i32"),
        gzip.compress(b"\xff" * 13),
    ],
    ids=["empty", "not gzip", "cut", "cut early", "another", "longer", "shorter", "not UTF-8"],
)
def test_a_damaged_file_is_none_and_stays(tmp_path: Path, damaged: bytes) -> None:
    files = TextFiles(tmp_path)
    digest = put(files, "define i32 @f")
    files.path(digest.sha256).write_bytes(damaged)

    assert files.get(digest.sha256, digest.size) is None
    assert damaged == files.path(digest.sha256).read_bytes()


def test_a_folder_in_the_place_of_a_file_is_none(tmp_path: Path) -> None:
    files = TextFiles(tmp_path)
    digest = TextDigest.of("text")
    files.path(digest.sha256).mkdir(parents=True)

    assert files.get(digest.sha256, digest.size) is None


@pytest.mark.parametrize("size", [5, 2**40, 2**62, 2**63 - 1])
def test_a_wrong_size_is_none(tmp_path: Path, size: int) -> None:
    files = TextFiles(tmp_path)
    digest = put(files, "text")

    assert files.get(digest.sha256, size) is None


def test_reading_takes_memory_by_what_was_announced_not_by_what_a_file_unpacks_to(tmp_path: Path) -> None:
    files = TextFiles(tmp_path)
    digest = TextDigest.of("text")
    path = files.path(digest.sha256)
    path.parent.mkdir()
    path.write_bytes(gzip.compress(bytes(100_000_000)))
    tracemalloc.start()
    try:
        found = files.get(digest.sha256, digest.size)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert found is None
    assert peak < 10_000_000


def test_a_folder_that_cannot_be_written_is_an_error_that_leaves_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "texts"
    blocked.write_text("a file in the place of the folder")

    with pytest.raises(OSError, match="texts"):
        put(TextFiles(blocked), "text")
    assert [blocked] == list(tmp_path.iterdir())


def test_writers_of_one_text_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    files = TextFiles(tmp_path)
    text = os.urandom(200_000).hex()
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    threads = [threading.Thread(target=files.put, args=(text, sha256)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert text == files.get(sha256, len(text))
    assert [files.path(sha256)] == [path for path in tmp_path.rglob("*") if path.is_file()]
