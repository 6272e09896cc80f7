"""The JSON that commands print is what its schemas say, and no other JSON is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_schemas import NAMES, errors, schema
from strategies import trips
from written_trips import write_recording

from otel_kernel.records import Trip
from otel_kernel.report.as_json import report_json
from otel_kernel.report.opening import opened_recording
from otel_kernel.report.summary import summarize
from report.shop import BEFORE, LATEST

NOTHING_LEFT_OUT: Final[dict[str, Any]] = {
    "problems": 0,
    "duplicates": 0,
    "other_spans": 0,
    "other_records": {},
}


def report_of(path: Path) -> dict[str, Any]:
    with opened_recording(path) as connection:
        report: dict[str, Any] = json.loads(
            json.dumps({**report_json(summarize(connection)), **NOTHING_LEFT_OUT})
        )
    return report


@settings(deadline=None)
@given(trips())
def test_any_trip_is_as_its_schema_says_and_comes_back_the_same(trip: Trip) -> None:
    data = json.loads(json.dumps(trip.to_json()))

    assert [] == errors("trip", data)
    assert trip == Trip.from_json(data)


@pytest.mark.parametrize("name", sorted(LATEST[0].to_json()))
def test_a_trip_without_a_field_is_none(name: str) -> None:
    data = {**LATEST[0].to_json()}
    del data[name]

    assert [] != errors("trip", data)
    with pytest.raises(ValueError, match=name):
        Trip.from_json(data)


@pytest.mark.parametrize(
    "change",
    [
        {"more": 1},
        {"kernel": ""},
        {"outcome": "Compiled"},
        {"outcome": None},
        {"state": "failed"},
        {"abandoned": "retry"},
        {"error_type": "ValueError"},
        {"duration_ns": None},
        {"duration_ns": -1},
        {"duration_ns": 2**63},
        {"seq": "1"},
        {"seq": 1.5},
        {"key": {"id": "1", "build_id": "2"}},
        {"key": {"id": "1" * 32}},
        {"session": "A" * 32},
        {"span_id": "1"},
        {"ir": {"truncated": ""}},
        {"ir_digest": {"sha256": "1" * 64, "size": -1}},
        {"attributes": {"a": None}},
        {"attributes": {"a": 1.5}},
        {"attributes": {"a": 2**63}},
    ],
)
def test_a_trip_with_a_wrong_field_is_refused_by_schema_and_reader_alike(change: dict[str, Any]) -> None:
    data = {**LATEST[0].to_json(), **change}

    assert [] != errors("trip", data)
    with pytest.raises(ValueError):
        Trip.from_json(data)


def test_a_report_is_as_its_schema_says(tmp_path: Path) -> None:
    report = report_of(write_recording(tmp_path / "r.db", (*BEFORE, *LATEST)))

    assert [] == errors("report", report)
    assert 18 == report["trips"]
    assert [1, 1] == [len(report[name]) for name in ("failed_trips", "unfinished_trips")]
    assert report["layers"][0]["internal"]["kernels"] == 2


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=st.lists(trips(), max_size=4, unique_by=lambda trip: trip.session.id))
def test_any_report_is_as_its_schema_says(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Trip]
) -> None:
    path = write_recording(tmp_path_factory.mktemp("drawn") / "r.db", [*LATEST, *drawn])

    report = report_of(path)

    assert [] == errors("report", report)
    assert len(LATEST) + len(drawn) == report["trips"]


@pytest.mark.parametrize("name", NAMES)
def test_every_object_of_a_schema_is_closed(name: str) -> None:
    objects = [each for each in parts(schema(name)) if each.get("type") == "object"]

    assert [] == [each for each in objects if "additionalProperties" not in each]
    assert [] == [
        each for each in objects if "properties" in each and set(each["required"]) != set(each["properties"])
    ]


def parts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in JSON."""
    if isinstance(value, dict):
        yield value
        value = list(cast("dict[str, Any]", value).values())
    if isinstance(value, list):
        for each in cast("Sequence[Any]", value):
            yield from parts(each)
