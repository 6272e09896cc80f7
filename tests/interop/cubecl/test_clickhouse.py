"""Replayed spans in the shipped ClickHouse view."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse.database import Database
from opentelemetry.sdk.resources import Resource

from generators import clickhouse
from interop.cubecl.environments import FULL, unpacked
from otel_kernel.cubecl.reading import read_environment
from otel_kernel.inputs import Problem
from otel_kernel.records import Trip
from otel_kernel.replay.spans import spans_of


@pytest.fixture
def database() -> Iterator[Database]:
    """A ClickHouse with the shipped view over the shipped table, for records of any age."""
    with Database() as made:
        made.run(clickhouse.view())
        made.run(clickhouse.table())
        made.run(
            "ALTER TABLE kernel_trips_table REMOVE TTL; "
            "ALTER TABLE kernel_trips_table MODIFY COLUMN ir REMOVE TTL; "
            "ALTER TABLE kernel_trips_table MODIFY COLUMN source REMOVE TTL"
        )
        yield made


def test_the_view_shows_each_trip_once_however_often_it_is_replayed(
    database: Database, tmp_path: Path
) -> None:
    records = [each for each in read_environment(unpacked(FULL, tmp_path)) if not isinstance(each, Problem)]
    for _ in range(3):
        for record in records:
            database.insert(spans_of(record, None, Resource({"service.name": "cubecl"}), None))
    rows = database.rows("SELECT session, seq, kernel, outcome, duration_ns, source FROM kernel_trips")
    expected = [
        (
            each.session.id,
            each.seq,
            each.kernel,
            each.outcome and each.outcome.value,
            each.duration_ns,
            each.source,
        )
        for each in records
        if isinstance(each, Trip)
    ]

    assert sorted(expected, key=str) == sorted((tuple(row.values()) for row in rows), key=str)
