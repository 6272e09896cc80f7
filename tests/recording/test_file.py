from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from example_trips import a_record

from otel_kernel.recording import schema
from otel_kernel.recording.errors import RecordingError
from otel_kernel.recording.file import check_header, create_or_check, default_path
from otel_kernel.recording.mounts import network_file_system
from otel_kernel.recording.pruning import prune
from otel_kernel.recording.reader import connect_readonly, read_trips
from otel_kernel.recording.writer import RecordingSink


def write_one(path: Path) -> None:
    RecordingSink(path).finished(a_record())


def read_all(path: Path) -> None:
    list(read_trips(path))


USES: dict[str, Callable[[Path], object]] = {
    "run": create_or_check,
    "write": write_one,
    "read": read_all,
    "query": connect_readonly,
    "prune": prune,
}


@pytest.fixture(params=USES.values(), ids=list(USES))
def use(request: pytest.FixtureRequest) -> Callable[[Path], object]:
    """Everything that may be done with a path."""
    chosen: Callable[[Path], object] = request.param
    return chosen


def a_recording(path: Path, trips: int = 50) -> None:
    sink = RecordingSink(path)
    for seq in range(trips):
        sink.finished(a_record(seq, source=f"text {seq} " * 50))
    sink.close()


def a_foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE trips (theirs)")
        connection.execute("INSERT INTO trips VALUES ('precious')")
        connection.commit()


def a_foreign_database_in_wal_mode(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    a_foreign_database(path)


def a_newer_recording(path: Path) -> None:
    a_recording(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {schema.USER_VERSION + 1}")


def a_truncated_recording(path: Path) -> None:
    a_recording(path)
    os.truncate(path, path.stat().st_size // 2)


def a_recording_without_its_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {schema.USER_VERSION}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE another (x)")


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (Path.touch, "is empty: remove it"),
    "text": (lambda path: path.write_text("a log\n" * 500), "is not a recording: name another file"),
    "short": (lambda path: path.write_bytes(b"SQLite format 3\0"), "is not a recording"),
    "garbage": (lambda path: path.write_bytes(b"SQLite format 3\0" + b"\xff" * 4080), "is not a recording"),
    "foreign": (a_foreign_database, "is a SQLite file of another program"),
    "foreign in WAL mode": (a_foreign_database_in_wal_mode, "is a SQLite file of another program"),
    "newer": (a_newer_recording, "has tables of version 2, this otel-kernel knows version 1"),
    "truncated": (a_truncated_recording, "is damaged .*: move it away"),
    "without tables": (a_recording_without_its_tables, "is damaged .*: move it away"),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_sound_recording_is_refused_and_never_changed(
    tmp_path: Path, use: Callable[[Path], object], make: Callable[[Path], object], message: str
) -> None:
    path = tmp_path / "r.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(RecordingError, match=message) as error:
        use(path)

    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    assert before == path.read_bytes()


@pytest.mark.parametrize("kind", ["empty", "text", "short", "garbage", "foreign", "foreign in WAL mode"])
def test_nothing_is_made_beside_a_foreign_file(
    tmp_path: Path, use: Callable[[Path], object], kind: str
) -> None:
    path = tmp_path / "r.db"
    REFUSED[kind][0](path)
    with pytest.raises(RecordingError):
        use(path)

    assert [path] == list(tmp_path.iterdir())


def test_a_folder_is_refused(tmp_path: Path, use: Callable[[Path], object]) -> None:
    with pytest.raises(RecordingError, match="is a folder: name a file"):
        use(tmp_path)


def test_a_pipe_is_refused_at_once(tmp_path: Path, use: Callable[[Path], object]) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(RecordingError, match="is no regular file"):
        use(path)


def test_a_link_that_leads_in_a_circle_is_refused(tmp_path: Path, use: Callable[[Path], object]) -> None:
    path = tmp_path / "r.db"
    path.symlink_to(path)
    with pytest.raises(RecordingError, match="cannot be looked at: Too many levels"):
        use(path)


@pytest.mark.parametrize("name", ["run", "write", "prune"])
def test_a_recording_in_a_folder_that_is_not_there_cannot_be_made(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordingError, match=r"cannot be made .*: its folder must exist"):
        USES[name](tmp_path / "missing" / "r.db")

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["read", "query"])
def test_reading_makes_no_recording(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordingError, match="there is no recording"):
        USES[name](tmp_path / "r.db")

    assert [] == list(tmp_path.iterdir())


def test_damaged_pages_are_found_before_a_run(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    a_recording(path, 200)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\xa5" * 4096 * 3)
    before = path.read_bytes()
    with pytest.raises(RecordingError, match=r"is damaged .*: move it away") as error:
        create_or_check(path)

    assert "\n" not in str(error.value)
    assert before == path.read_bytes()


def test_a_refused_file_is_asked_for_once(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    path.touch()
    sink = RecordingSink(path)
    with pytest.raises(RecordingError, match="is empty") as error:
        sink.finished(a_record(0))

    assert error.value.lasting
    path.unlink()
    with pytest.raises(RecordingError, match="is empty"):
        sink.finished(a_record(1))

    assert [] == list(tmp_path.iterdir())


def test_the_log_of_a_removed_recording_is_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    sink.finished(a_record(0))
    path.unlink()
    left = Path(f"{path}-wal").read_bytes()
    with pytest.raises(RecordingError, match=r"r.db-wal was left: end the programs that write it"):
        RecordingSink(path).finished(a_record(1))

    assert left == Path(f"{path}-wal").read_bytes()
    assert not path.exists()
    sink.close()


def test_a_checked_header_leaves_the_locks_of_the_process_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = RecordingSink(path)
    sink.finished(a_record())

    def locks() -> int:
        mine = f" {os.getpid()} "
        inode = f":{path.stat().st_ino} "
        return sum(mine in line and inode in line for line in Path("/proc/locks").read_text().splitlines())

    before = locks()
    check_header(path)
    read_all(path)

    assert before > 0
    assert before == locks()
    sink.close()


def test_a_checked_recording_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    create_or_check(path)
    a_recording(path)
    before = path.read_bytes()
    create_or_check(path)

    assert before == path.read_bytes()
    assert 50 == len(list(read_trips(path)))


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "r.db")
    write_one(tmp_path / "link.db")

    assert [a_record()] == list(read_trips(tmp_path / "real" / "r.db"))


@pytest.mark.parametrize("name", ["a b.db", "a?mode=ro#%41.db", "a'b\".db", "é\udcff.db"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    create_or_check(path)
    write_one(path)

    assert [a_record()] == list(read_trips(path))
    assert path in tmp_path.iterdir()


def test_the_default_recording_is_private_and_named_after_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = default_path()
    create_or_check(path)

    assert tmp_path / "state" / "otel-kernel" / f"{os.uname().nodename}.db" == path
    assert 0o600 == path.stat().st_mode & 0o777
    assert 0o700 == path.parent.stat().st_mode & 0o777


@pytest.mark.parametrize("state", [None, "", "relative/state"])
def test_without_a_usable_state_home_the_recording_is_below_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str | None
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    if state is None:
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_STATE_HOME", state)

    assert tmp_path / ".local" / "state" / "otel-kernel" == default_path().parent


MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/local ext4 rw 0 0
me@host:/ /mnt/my\\040files fuse.sshfs rw 0 0
tmpfs /mnt/my\\040files/tmp tmpfs rw 0 0
//nas/share /srv cifs rw 0 0
/dev/vdc /srv xfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/r.db", None),
        ("/home/me/r.db", "nfs4"),
        ("/home/local/r.db", None),
        ("/homely/r.db", None),
        ("/mnt/my files/r.db", "fuse.sshfs"),
        ("/mnt/my files/tmp/r.db", None),
        ("/srv/r.db", None),
    ],
)
def test_a_network_file_system_is_known_by_the_innermost_mount(
    tmp_path: Path, path: str, kind: str | None
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)

    assert kind == network_file_system(Path(path), mounts)


def test_without_a_table_of_mounts_no_file_system_is_a_network_one(tmp_path: Path) -> None:
    assert network_file_system(Path("/home/me/r.db"), tmp_path / "missing") is None


def test_a_local_recording_is_not_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="otel_kernel"):
        create_or_check(tmp_path / "r.db")
        create_or_check(tmp_path / "r.db")

    assert [] == caplog.messages
