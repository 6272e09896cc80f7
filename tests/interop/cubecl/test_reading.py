"""Environments of real CubeCL programs as an INPUT."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import cbor2
import pytest
from cli.command import otel_kernel, refusal

from interop.cubecl.environments import FULL, NAMES, execute, rows, standalone, unpacked
from otel_kernel import semconv
from otel_kernel.cubecl.environment import opened
from otel_kernel.cubecl.reading import read_environment
from otel_kernel.inputs import InputError, Problem, open_input
from otel_kernel.kinds import (
    CompilationBatchRecord,
    MarkRecord,
    MemoryRecord,
    Stamped,
    TuneRecord,
    UnknownRecord,
    kind_of,
)
from otel_kernel.records import CompilationOutcome, Trip

UPDATE = "UPDATE entries SET value = ? WHERE namespace = ? AND key = ?"
INSERT = "INSERT INTO entries VALUES (?, ?, ?, 0)"


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """Each environment by its name."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def environment(name: str, tmp_path: Path) -> Path:
    """Each environment as its program left it."""
    return unpacked(name, tmp_path)


def all_of(path: Path) -> list[Trip | Stamped]:
    """Return all records, which must all be readable."""
    found = list(read_environment(path))
    assert [] == [each for each in found if isinstance(each, Problem)]
    return [each for each in found if not isinstance(each, Problem)]


def trips_of(path: Path) -> list[Trip]:
    return [each for each in all_of(path) if isinstance(each, Trip)]


def test_there_is_an_environment_of_either_name_of_the_duration_and_of_either_level() -> None:
    assert {("0.11", "basic"), ("0.11", "full"), ("0.12", "basic"), ("0.12", "full")} == {
        (name[:4], name.rpartition("-")[2]) for name in NAMES
    }


def test_every_record_is_read_in_the_order_in_which_it_was_stamped(environment: Path) -> None:
    found = all_of(environment)
    stamps = [(each.session.id[16:], each.seq) for each in found]

    assert sorted(stamps) == stamps
    assert len(set(stamps)) == len(stamps)


def test_compilations_are_trips_with_every_outcome(environment: Path, name: str) -> None:
    trips = trips_of(environment)

    assert set(CompilationOutcome) == {trip.outcome for trip in trips}
    for trip in trips:
        assert ("cubecl", "cubecl") == (trip.runtime, trip.layer)
        assert trip.kernel in ("producer::scale::Scale", "producer::shift::Shift")
        assert trip.key is not None
        assert name.startswith("0.11") or trip.attributes[semconv.BUILD] == "cubecl 0.12.0-pre.1"
        assert trip.attributes[semconv.DEVICE_LOADED] is True


def test_texts_are_there_at_level_full_and_not_at_level_basic(environment: Path, name: str) -> None:
    trips = trips_of(environment)
    lowered = [trip for trip in trips if trip.outcome is not CompilationOutcome.LOADED]

    if name.endswith("full"):
        assert all(isinstance(trip.ir, str) and "kernel" in trip.ir for trip in lowered)
        assert all(isinstance(trip.source, str) and trip.source for trip in lowered)
    else:
        assert {(None, None)} == {(trip.ir, trip.source) for trip in trips}


def test_a_rebuild_of_unchanged_kernels_shows_as_rekeyed(environment: Path) -> None:
    trips = trips_of(environment)
    (rekeyed,) = [trip for trip in trips if trip.outcome is CompilationOutcome.REKEYED]
    compiled = [trip for trip in trips if trip.key and rekeyed.key and trip.key.id == rekeyed.key.id]

    assert CompilationOutcome.COMPILED is compiled[0].outcome
    assert rekeyed.key is not None
    assert compiled[0].key is not None
    assert rekeyed.key.build_id != compiled[0].key.build_id
    assert rekeyed.source == compiled[0].source


def test_every_kind_is_read_as_its_type(environment: Path, name: str) -> None:
    found = [each.record for each in all_of(environment) if isinstance(each, Stamped)]
    (tune,) = [each for each in found if isinstance(each, TuneRecord)]
    (mark,) = [each for each in found if isinstance(each, MarkRecord)]
    (memory,) = [each for each in found if isinstance(each, MemoryRecord)]
    batches = [each for each in found if isinstance(each, CompilationBatchRecord)]

    assert {"rows": 64, "columns": 64} == json.loads(tune.key)
    assert tune.table.endswith("/producer-double")
    assert {"by scale", "by shift"} == {trial.name for trial in tune.trials}
    assert ["by scale", "by shift"] == [each.name for each in tune.plan]
    assert (0 <= tune.winner < 2, tune.stored, tune.dry_run) == (True, True, False)
    assert sum(trial.wall for trial in tune.trials) <= tune.wall
    assert ("load weights", "model loaded") == (mark.label, memory.label)
    assert json.loads(memory.report)["streams"]
    assert name.startswith("0.12") == bool(batches)
    assert not any(isinstance(each, UnknownRecord) for each in found)


def test_sessions_say_what_their_program_did(environment: Path) -> None:
    with opened(environment) as found:
        labels = [session.label for session in found.sessions.values()]
        starts = [(session.id // 10**6, session.started_unix_ms) for session in found.sessions.values()]

    assert ["models build shop", "second build", "second build again"] == labels
    assert all(ns_as_ms == ms for ns_as_ms, ms in starts)


COMMANDS = {
    "list": (),
    "list --json": ("--json",),
    "list --kind": ("--kind", "all"),
    "report": (),
    "report --json": ("--json",),
    "runs": (),
    "show producer::scale::Scale": ("producer::scale::Scale",),
    "diff": ("--json",),
    "export": (),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_reading_command_takes_an_environment(tmp_path: Path, command: str) -> None:
    environment = unpacked(FULL, tmp_path)
    both = (environment, environment) if command == "diff" else (environment,)
    done = otel_kernel(command.split(maxsplit=1)[0], *COMMANDS[command], *both)

    assert (0, "") == (done.returncode, done.stderr)
    assert "producer::scale::Scale" in done.stdout or command in ("runs", "diff")
    assert done.stdout


def test_records_of_other_kinds_are_counted_and_listed(environment: Path) -> None:
    kinds = Counter(kind_of(each.record) for each in all_of(environment) if isinstance(each, Stamped))
    report = json.loads(otel_kernel("report", "--json", environment).stdout)
    said = otel_kernel("report", environment).stdout.splitlines()[-1]
    listed = otel_kernel("list", "--json", "--kind", "autotune", environment).stdout.splitlines()

    assert dict(kinds) == report["other_records"]
    assert said.startswith("Left out: ")
    assert all(f"of kind {kind}" in said for kind in kinds)
    assert [{"rows": 64, "columns": 64}] == [json.loads(line)["record"]["key"] for line in listed]


def test_an_environment_is_not_touched_by_reading_it(environment: Path) -> None:
    before = {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in environment.parent.iterdir()
    }

    otel_kernel("report", environment)

    assert before == {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in environment.parent.iterdir()
    }


def test_a_read_only_folder_is_enough(tmp_path: Path) -> None:
    environment = unpacked(FULL, tmp_path / "sealed")
    expected = trips_of(environment)
    for path in (*environment.parent.iterdir(), environment.parent):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert expected == trips_of(environment)
    finally:
        environment.parent.chmod(0o755)


def test_an_unknown_kind_is_kept_and_named(tmp_path: Path) -> None:
    path = standalone(FULL, tmp_path)
    ((key, value),) = rows(path, "marks")
    value["record"] = {"word": "new", "count": 2**100, "raw": b"\0\xff", 7: [1.5]}
    execute(path, INSERT, "records/v1/weather", key, cbor2.dumps(value))
    execute(path, "DELETE FROM entries WHERE namespace = 'records/v1/marks'")
    (unknown,) = [
        each.record
        for each in all_of(path)
        if isinstance(each, Stamped) and isinstance(each.record, UnknownRecord)
    ]

    assert "weather" == unknown.kind
    assert {
        "$map": [["word", "new"], ["count", 2**100], ["raw", {"$bytes": "00ff"}], [7, [1.5]]]
    } == json.loads(unknown.body)
    assert "1 record of kind weather" in otel_kernel("report", path).stdout


def test_unknown_fields_are_kept_and_named(tmp_path: Path) -> None:
    path = standalone(FULL, tmp_path)
    for kind in ("compilation", "compilation_batch", "autotune", "marks", "memory"):
        key, value = rows(path, kind)[0]
        value["record"]["priority"] = {"level": 3}
        value["stamp"]["thread"] = 7
        execute(path, UPDATE, cbor2.dumps(value), f"records/v1/{kind}", key)
    found = all_of(path)
    trip = next(each for each in found if isinstance(each, Trip))
    expected = {"priority": '{"level": 3}', "stamp_thread": "7"}

    assert expected == {
        name.removeprefix(semconv.RECORD_FIELD): value
        for name, value in trip.attributes.items()
        if name.startswith(semconv.RECORD_FIELD)
    }
    others = [each.record for each in found if isinstance(each, Stamped)]
    assert {"autotune", "compilation_batch", "marks", "memory"} == {
        kind_of(each)
        for each in others
        if not isinstance(each, UnknownRecord) and dict(each.other) == expected
    }


def test_the_other_schema_is_read_alike(tmp_path: Path) -> None:
    path = standalone(FULL, tmp_path)
    expected = all_of(path)
    execute(path, "ALTER TABLE entries RENAME TO cache_entries")
    execute(path, "UPDATE meta SET v = '4' WHERE k = 'schema_version'")

    assert expected == all_of(path)


@pytest.mark.parametrize(
    ("schema", "advice"), [("5", "update it"), ("2", "read it with the CubeCL that wrote it")]
)
def test_another_schema_is_refused_with_both_versions(tmp_path: Path, schema: str, advice: str) -> None:
    path = standalone(FULL, tmp_path)
    execute(path, "UPDATE meta SET v = ? WHERE k = 'schema_version'", schema)

    assert (
        f"{path} is a CubeCL environment of schema {schema}, and this otel-kernel knows 3 to 4: {advice}"
        == refusal("list", path)
    )


def test_records_of_another_version_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = standalone(FULL, tmp_path)
    expected = all_of(path)
    execute(path, INSERT, "records/v2/compilation", b"\x01", b"\x01")
    *problems, rest = [[each for each in read_environment(path) if isinstance(each, Problem)], expected]

    assert [
        [
            Problem(
                str(path),
                "records/v2/compilation holds records of another version than v1, the one that this otel-kernel "
                "knows: update it",
            )
        ]
    ] == problems
    assert rest == [each for each in read_environment(path) if not isinstance(each, Problem)]


DAMAGE = {
    "no CBOR": (b"\xff\xff", "malformed CBOR"),
    "two values": (cbor2.dumps(1) + cbor2.dumps(2), "malformed CBOR: more than one value"),
    "an int": (cbor2.dumps(1), "row must be a map, got 1"),
    "no stamp": (cbor2.dumps({"record": {}}), "row.stamp is missing"),
    "nothing": (b"", "malformed CBOR"),
}


@pytest.mark.parametrize(("value", "reason"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_row_is_a_problem_and_the_rest_is_read(tmp_path: Path, value: bytes, reason: str) -> None:
    path = standalone(FULL, tmp_path)
    expected = trips_of(path)
    key, _ = rows(path, "compilation")[0]
    execute(path, UPDATE, value, "records/v1/compilation", key)
    found = list(open_input(path))
    (problem,) = [each for each in found if isinstance(each, Problem)]

    assert f"{path}: records/v1/compilation [" in problem.where
    assert reason in problem.reason
    assert expected[1:] == [each for each in found if isinstance(each, Trip)]


FIELDS = {
    "outcome": ("Guessed", "record.outcome must be one of Compiled, Loaded, Rekeyed, got 'Guessed'"),
    "kernel": (b"\0", "record.kernel must be a text"),
    "key": ({"id": -1, "build_id": 1}, "record.key.id must be an int from 0 on, got -1"),
    "work": ({"secs": 1, "nanos": 10**9}, "record.work.nanos must be below 1000000000"),
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_another_type_is_named(tmp_path: Path, field: str) -> None:
    value, reason = FIELDS[field]
    path = standalone(FULL, tmp_path)
    key, row = rows(path, "compilation")[0]
    row["record"][field] = value
    execute(path, UPDATE, cbor2.dumps(row), "records/v1/compilation", key)
    (problem,) = [each for each in open_input(path) if isinstance(each, Problem)]

    assert reason in problem.reason


def test_a_record_whose_session_was_pruned_is_read(tmp_path: Path) -> None:
    path = standalone(FULL, tmp_path)
    expected = trips_of(path)
    execute(path, "DELETE FROM entries WHERE namespace = 'records/v1/sessions'")
    orphans = trips_of(path)
    gone = (semconv.BUILD, semconv.PROCESS_PID)

    assert [
        replace(trip, attributes={name: value for name, value in trip.attributes.items() if name not in gone})
        for trip in expected
    ] == orphans


def test_several_environments_are_read_as_one_input_each_record_once(tmp_path: Path) -> None:
    first = standalone(FULL, tmp_path)
    shutil.copy(first, tmp_path / "copy.db")
    found = open_input(tmp_path / "*.db")

    assert trips_of(first) == list(found)
    assert len(all_of(first)) == found.duplicates


def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = standalone(FULL, tmp_path)
    data = bytearray(path.read_bytes())
    for page in range(1, len(data) // 4096):
        data[page * 4096 : page * 4096 + 64] = os.urandom(64)
    path.write_bytes(data)
    monkeypatch.setattr("otel_kernel.cubecl.snapshot._PAUSE", 0)

    with pytest.raises(
        InputError, match=r"cannot be read as a CubeCL environment after \d+ tries: it is damaged"
    ):
        list(open_input(path))


def test_a_torn_copy_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = unpacked(FULL, tmp_path)
    expected = trips_of(path)
    copies: list[object] = []
    copy = shutil.copyfile

    def meddling(source: str | Path, target: Path) -> None:
        copy(source, target)
        copies.append(source)
        if len(copies) == 1:
            path.touch()  # as a checkpoint does while the database is copied
        elif len(copies) == 3:
            log = Path(f"{path}-wal")
            data = bytearray(log.read_bytes())
            data[16:24] = os.urandom(8)  # as a log that starts anew has other salts
            log.write_bytes(data)
        elif len(copies) == 4:
            shutil.move(tmp_path / "shop.db-wal.kept", f"{path}-wal")

    shutil.copy(f"{path}-wal", tmp_path / "shop.db-wal.kept")
    monkeypatch.setattr(shutil, "copyfile", meddling)
    monkeypatch.setattr("otel_kernel.cubecl.snapshot._PAUSE", 0)

    assert expected == trips_of(path)
    assert len(copies) > 4


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE meta (name, value)")

    assert "is a SQLite file of another program" in refusal("list", tmp_path / "other.db")
