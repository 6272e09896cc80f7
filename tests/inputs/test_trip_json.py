"""Trips that were written as JSON lines come back as they were."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from example_trips import a_record, an_unfinished_trip
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import trips
from written_trips import write_otlp, write_trips

from otel_kernel import semconv
from otel_kernel.inputs import Problem, open_input
from otel_kernel.inputs.json_lines import read_line
from otel_kernel.records import TextDigest, Trip, TruncatedText
from otel_kernel.texts import TextFiles


def by_identity(read: list[Trip]) -> list[Trip]:
    return sorted(read, key=lambda trip: (trip.session.id, trip.seq))


@settings(max_examples=50, deadline=None)
@given(drawn=st.lists(trips(), max_size=4, unique_by=lambda trip: (trip.session.id, trip.seq)))
def test_any_trip_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, drawn: list[Trip]) -> None:
    path = write_trips(tmp_path_factory.mktemp("drawn") / "trips.jsonl", [*drawn, a_record(10**6)])

    found = open_input(path)
    read = [each for each in found if isinstance(each, Trip)]

    assert by_identity([*drawn, a_record(10**6)]) == by_identity(read)
    assert (len(drawn) + 1, 0, 0) == (found.trips, found.problems, found.duplicates)


def test_a_file_may_hold_spans_and_trips(tmp_path: Path) -> None:
    process = {semconv.PROCESS_PID: 1, semconv.THREAD_ID: 2, semconv.DEVICE_LOADED: True}
    span = replace(a_record(attributes=process), trace_id="1" * 32, span_id="1" * 16)
    path = write_otlp(tmp_path / "both.jsonl", [span])
    with path.open("ab") as file:
        file.write(write_trips(tmp_path / "trips.jsonl", [a_record(1), an_unfinished_trip(2)]).read_bytes())

    assert [span, a_record(1), an_unfinished_trip(2)] == list(open_input(path))


def test_a_trip_that_is_there_as_a_span_too_counts_once(tmp_path: Path) -> None:
    path = write_trips(tmp_path / "trips.jsonl", [a_record(), a_record()])

    found = open_input(path)

    assert [a_record()] == list(found)
    assert 1 == found.duplicates


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"seq": "1"}, "Trip.seq must be an int in 0..2**63-1, got '1'"),
        ({"kernel": None}, "Trip.kernel must be a non-empty str, got None"),
        ({"more": 1}, "Trip.json must be an object without unknown fields, got ['more']"),
        ({"attributes": []}, "Trip.attributes must be an object, got []"),
    ],
)
def test_a_malformed_trip_is_a_problem_of_its_line(change: dict[str, Any], reason: str) -> None:
    line = json.dumps({**a_record().to_json(), **change}).encode()

    assert [Problem("trips.jsonl:7", f"malformed trip: {reason}")] == list(read_line(line, "trips.jsonl:7"))


def test_a_text_that_was_cut_comes_back_whole_from_a_text_file(tmp_path: Path) -> None:
    text = "label 0:\n" * 100
    digest = TextDigest.of(text)
    cut = a_record(ir=TruncatedText("label", digest.sha256, digest.size), source=digest)
    path = write_trips(tmp_path / "trips.jsonl", [cut])
    texts = TextFiles(tmp_path / "texts")

    assert [cut] == list(open_input(path, texts=texts))

    texts.put(text, digest.sha256)

    assert [replace(cut, ir=text)] == list(open_input(path, texts=texts))


def test_a_file_of_lines_tells_how_far_it_is_read(tmp_path: Path) -> None:
    path = write_trips(tmp_path / "trips.jsonl", [a_record(seq) for seq in range(200)])
    found = open_input(path)
    positions = [found.position for _ in found]

    assert path.stat().st_size == found.size
    assert path.stat().st_size == found.position == positions[-1]
    assert sorted(positions) == positions
    assert 200 == len(set(positions))
    assert 0 == open_input(path).position
