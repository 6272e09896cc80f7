"""`explain` on recordings, lines, and runs that were real."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from json_schemas import errors
from report.shop import COMPILED, EARLIER, LOADED, WEB, WORKER, a_trip, key
from written_trips import write_otlp, write_recording, write_trips

from cli.command import otel_kernel, refusal
from otel_kernel import semconv
from otel_kernel.records import AttributeValue, Trip

STORED: dict[str, AttributeValue] = {semconv.STORE_STORED: True, semconv.STORE_LOCATION: "/store"}


def with_options(options: str, **more: AttributeValue) -> dict[str, AttributeValue]:
    part = semconv.KEY_COMPONENT
    return {**STORED, f"{part}options": options, f"{part}signature": "(float64,)", **more}


PRICE = (
    a_trip(EARLIER, 0, "shop.price", 0, 300, COMPILED, key=key(1), attributes=with_options("fast=0 OPT=3")),
    a_trip(WEB, 0, "shop.price", 5000, 400, COMPILED, key=key(2), attributes=with_options("fast=0 OPT=0")),
    a_trip(WEB, 1, "shop.price", 6000, 30, LOADED, key=key(2), attributes=with_options("fast=0 OPT=0")),
    a_trip(WORKER, 0, "shop.price", 7000, 310, COMPILED, key=key(2), attributes=with_options("fast=0 OPT=0")),
)
OLD = a_trip(EARLIER, 1, "shop.old", 100, 10, COMPILED)
BROKEN = a_trip(WEB, 2, "shop.broken", 8000, 10, error_type="ValueError")


def read(*arguments: str | Path) -> dict[str, Any]:
    done = otel_kernel("explain", "--json", *arguments)

    assert (0, "") == (done.returncode, done.stderr)
    data: dict[str, Any] = json.loads(done.stdout)
    assert [] == errors("explain", data)
    return data


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return write_recording(tmp_path / "r.db", (*PRICE, BROKEN, OLD))


def test_the_trips_of_the_latest_run_are_explained_by_all_that_came_before(recording: Path) -> None:
    done = otel_kernel("explain", "shop.price", recording)

    assert (0, "") == (done.returncode, done.stderr)
    assert (
        """\
3 records, 1 loaded.

shop.price
  compiled in 310 ms, bbbbbbbb:0 at 2023-11-14 22:13:27 UTC
  the store held it before and no more: /store
  compared with aaaaaaaa:1 at 2023-11-14 22:13:26 UTC, loaded

shop.price
  compiled in 400 ms, aaaaaaaa:0 at 2023-11-14 22:13:25 UTC
  other options: options (OPT=3 -> OPT=0); 1 part equal
  compared with eeeeeeee:0 at 2023-11-14 22:13:20 UTC, compiled
"""
        == done.stdout
    )


def test_one_trip_is_explained_whatever_came_of_it(recording: Path) -> None:
    (loaded,) = read("aaaa:1", recording)["trips"]
    (first,) = read("eeee:0", recording)["trips"]

    assert ("loaded", None) == (loaded["outcome"], loaded["why"])
    assert "first" == first["why"]["reason"]
    assert "found in the store" in otel_kernel("explain", "aaaa:1", recording).stdout


@pytest.mark.parametrize("write", [write_otlp, write_trips])
def test_lines_are_explained_over_all_their_runs(write: Any, tmp_path: Path) -> None:
    data = read("shop.price", write(tmp_path / "trips.jsonl", PRICE))

    assert (4, 1) == (data["records"], data["loaded"])
    assert ["lost", "option", "first"] == [trip["why"]["reason"] for trip in data["trips"]]


def test_a_run_can_be_named(recording: Path) -> None:
    assert 1 == read("shop.price", recording, "--run", EARLIER.run)["records"]
    assert 4 == read("shop.price", recording, "--run", "all")["records"]


def test_a_kernel_that_was_loaded_only_has_nothing_to_explain(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.db", [replace(PRICE[2], seq=9)])

    assert "1 record, 1 loaded: nothing to explain.\n" == otel_kernel("explain", "shop.price", path).stdout


def test_what_is_not_there_is_refused_in_one_line(recording: Path) -> None:
    assert "similar kernels: shop.price" in refusal("explain", "price", recording)
    assert "other runs have some" in refusal("explain", "shop.old", recording)
    assert "no trip abcd:7" in refusal("explain", "abcd:7", recording)
    assert "has no outcome" in refusal("explain", "aaaa:2", recording)
    assert "no record of shop.broken" in refusal("explain", "shop.broken", recording)


def test_lines_of_the_code_that_differ_are_shown_where_the_texts_are_kept(tmp_path: Path) -> None:
    trips = [
        replace(
            a_trip(session, 0, "shop.price", at, 10, COMPILED, key=key(at), attributes=attributes),
            ir=f"define\n  {operation} x\nreturn\n",
        )
        for session, at, operation, attributes in (
            (EARLIER, 0, "add", {semconv.KEY_COMPONENT + "module": "1"}),
            (WEB, 1000, "multiply", {semconv.KEY_COMPONENT + "module": "2"}),
        )
    ]
    path = write_recording(tmp_path / "r.db", trips)
    (trip,) = read("shop.price", path)["trips"]

    assert ("source", ["-  add x", "+  multiply x"]) == (trip["why"]["reason"], trip["ir_difference"])
    assert "    -  add x\n    +  multiply x\n" in otel_kernel("explain", "shop.price", path).stdout


def test_real_runs_are_explained(real_recording: Path) -> None:
    kernels = {
        trip.kernel.rpartition(".")[2]: trip.kernel for trip in map(Trip.from_json, lines_of(real_recording))
    }
    (edited,) = read(kernels["with_tax"], real_recording)["trips"]

    assert "source" == edited["why"]["reason"]
    assert "source_digest" in [part["name"] for part in edited["why"]["differing"]]


def lines_of(recording: Path) -> list[Any]:
    listed = otel_kernel("list", "--json", recording).stdout
    return [json.loads(line) for line in listed.splitlines()]


def test_the_summary_of_a_run_says_why(real_recording: Path) -> None:
    said = " ".join(otel_kernel("report", real_recording).stdout.split())

    assert "Compiled again, and why" in said
    assert "other code: source digest" in said
