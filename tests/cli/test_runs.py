"""`runs` on every kind of INPUT."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from json_schemas import errors
from report.shop import BEFORE, COMPILED, DEAD_PID, ENDED, LATEST, START_NS, WEB, a_trip, ms
from written_trips import write_otlp, write_recording, write_trips

from cli.command import otel_kernel
from otel_kernel.records import Session, Trip

UNKNOWN = {"host": None, "program": None, "live": None}
EARLIER_RUN = {
    **UNKNOWN,
    "run": "1" * 32,
    "started_ns": START_NS - ms(9000),
    "last_ns": START_NS - ms(5860),
    "processes": 1,
    "trips": 4,
    "compiled": 4,
    "loaded": 0,
    "rekeyed": 0,
    "failed": 0,
    "abandoned": 0,
    "unfinished": 0,
    "spent_ns": ms(1690),
}
LATEST_RUN = {
    **UNKNOWN,
    "run": "2" * 32,
    "started_ns": START_NS,
    "last_ns": START_NS + ms(4010),
    "processes": 2,
    "trips": 14,
    "compiled": 6,
    "loaded": 4,
    "rekeyed": 1,
    "failed": 1,
    "abandoned": 1,
    "unfinished": 1,
    "spent_ns": ms(1440),
}


def of_this_process(trips: Iterable[Trip]) -> list[Trip]:
    return [replace(trip, attributes={**trip.attributes, "process.pid": os.getpid()}) for trip in trips]


def read_runs(*arguments: str | Path, stdin: bytes = b"") -> list[dict[str, Any]]:
    done = otel_kernel("runs", "--json", *arguments, stdin=stdin)
    assert (0, "") == (done.returncode, done.stderr)
    data = json.loads(done.stdout)
    assert [] == errors("runs", data)
    found: list[dict[str, Any]] = data["runs"]
    return found


def test_the_runs_of_a_recording_come_newest_first(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.db", (*BEFORE, *LATEST))

    assert [LATEST_RUN, EARLIER_RUN] == read_runs(path)


def test_the_runs_of_lines_are_those_of_their_trips(tmp_path: Path) -> None:
    ended = {**LATEST_RUN, "trips": 13, "unfinished": 0}
    spans = write_otlp(tmp_path / "1.jsonl", (*BEFORE, *ENDED))
    write_trips(tmp_path / "2.jsonl", ENDED)

    assert [ended, EARLIER_RUN] == read_runs(spans)
    assert [ended, EARLIER_RUN] == read_runs("-", stdin=spans.read_bytes())
    assert [ended, EARLIER_RUN] == read_runs(f"{tmp_path}/*.jsonl")
    assert [ended] == read_runs(tmp_path / "2.jsonl")


def test_a_run_with_a_live_process_still_runs(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.db", of_this_process(ENDED[:2]))
    write_recording(path, BEFORE)
    (live, other) = read_runs(path)

    assert (True, None) == (live["live"], other["live"])
    assert (os.uname().nodename, None) == (live["host"], other["host"])
    assert live["program"]

    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE sessions SET pid = ? WHERE pid IS NOT NULL", (DEAD_PID,))

    assert [False, None] == [run["live"] for run in read_runs(path)]


def test_runs_are_readable(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.db", (*BEFORE, *LATEST))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE sessions SET program = 'serve\x1b.py', host = 'gpu-7' WHERE id = ?", (WEB.id,)
        )

    done = otel_kernel("runs", path)

    assert (
        r"""22222222  2023-11-14 22:13:20 UTC, serve\x1b.py on gpu-7, 2 processes
          14 trips: 6 compiled, 4 loaded, 1 rekeyed, 1 failed, 1 abandoned, 1
          unfinished; 1.44 s spent
11111111  2023-11-14 22:13:11 UTC, 1 process
          4 trips: 4 compiled; 1.69 s spent
"""
        == done.stdout
    )
    assert (0, "") == (done.returncode, done.stderr)


def test_a_run_that_still_runs_says_so(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.db", of_this_process(ENDED[:1]))

    assert otel_kernel("runs", path).stdout.endswith("1 trip: 1 compiled; 1.00 s spent; it still runs\n")


def test_ids_are_as_long_as_it_takes_to_tell_them_apart(tmp_path: Path) -> None:
    sessions = [Session(id=f"{number}" * 32, run="a" * 20 + f"{number}" * 12) for number in (1, 2)]
    trips = [a_trip(session, 0, "shop.price", 0, 1, COMPILED) for session in sessions]
    output = otel_kernel("runs", write_recording(tmp_path / "r.db", trips)).stdout

    assert ["a" * 20 + "1", "a" * 20 + "2"] == [line.split()[0] for line in output.splitlines()[::2]]


@pytest.mark.parametrize("as_json", [False, True])
def test_an_empty_recording_has_no_runs(tmp_path: Path, *, as_json: bool) -> None:
    path = write_recording(tmp_path / "r.db", ENDED[:1])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM trips")
        connection.execute("DELETE FROM sessions")

    if as_json:
        assert [] == read_runs(path)
    else:
        assert "No runs.\n" == otel_kernel("runs", path).stdout
