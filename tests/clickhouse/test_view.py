"""The typed view and the table of trips: what they hold of a span, and what they leave out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from example_trips import a_record
from mapping.carriers import full_trip, span_of, with_ids
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from clickhouse.database import Database
from generators import clickhouse
from otel_kernel import semconv
from otel_kernel.recording.schema import ATTRIBUTE_COLUMNS
from otel_kernel.records import Abandoned, CompilationOutcome, KernelCacheKey, Trip

NOW_NS = 1_796_000_000 * 10**9
"""No retention that the tests leave in place has passed since."""


@pytest.fixture
def database() -> Iterator[Database]:
    with Database() as made:
        made.run(clickhouse.view())
        yield made


def with_table(database: Database) -> Database:
    database.run(clickhouse.table())
    database.run(
        "ALTER TABLE kernel_trips_table REMOVE TTL; "
        "ALTER TABLE kernel_trips_table MODIFY COLUMN ir REMOVE TTL; "
        "ALTER TABLE kernel_trips_table MODIFY COLUMN source REMOVE TTL"
    )
    return database


def the_row(database: Database, *spans: ReadableSpan) -> dict[str, Any]:
    database.insert(spans)
    (row,) = database.rows("SELECT * FROM kernel_trips")
    return row


def test_every_field_and_attribute_of_a_trip_is_a_typed_column(database: Database) -> None:
    trip = replace(full_trip(), key=KernelCacheKey(id=2**128 - 2, build_id=1))

    row = the_row(database, span_of(trip))

    fields = {
        "run": trip.session.run,
        "session": trip.session.id,
        "seq": 12,
        "parent_seq": 11,
        "runtime": "acme",
        "layer": "acme.graph",
        "kernel": "shop.pricing.discount",
        "started_ns": trip.started_ns,
        "started": "2023-11-14 22:13:20.000000000",
        "duration_ns": 1_200_345_678,
        "state": "record",
        "outcome": "compiled",
        "abandoned": None,
        "error_type": None,
        "message": None,
        "key_id": 2**128 - 2,
        "key_build_id": 1,
        "trace_id": trip.trace_id,
        "span_id": trip.span_id,
        "ir": trip.ir,
        "source": trip.source,
    }
    assert fields == {name: row[name] for name in fields}
    for name, column in ATTRIBUTE_COLUMNS.items():
        assert trip.attributes.get(name) == row[column], name
    for prefix, column in ((semconv.KEY_COMPONENT, "key_components"), (semconv.STAGE, "stages")):
        members = {
            name.removeprefix(prefix): value
            for name, value in trip.attributes.items()
            if name.startswith(prefix)
        }
        assert members == row[column]


def test_what_a_trip_does_not_have_is_null(database: Database) -> None:
    bare = replace(with_ids(a_record(started_ns=NOW_NS)), key=None)

    row = the_row(database, span_of(bare))

    nullable = [column.name for column in clickhouse.COLUMNS if "Nullable" in column.kind]
    assert {"outcome"} == {name for name in nullable if row[name] is not None}
    assert ({}, {}) == (row["key_components"], row["stages"])


@pytest.mark.parametrize(
    ("end", "state"),
    [
        ({"error_type": "shop.Error", "message": "shop.Error at x.py:1"}, "failed"),
        ({"abandoned": Abandoned.TUNING}, "abandoned"),
    ],
)
def test_trip_without_an_outcome_says_how_it_ended(
    database: Database, end: dict[str, Any], state: str
) -> None:
    trip = replace(with_ids(a_record(started_ns=NOW_NS)), outcome=None, key=None, **end)

    row = the_row(database, span_of(trip))

    assert (state, None) == (row["state"], row["outcome"])
    assert (trip.error_type, trip.message) == (row["error_type"], row["message"])
    assert (trip.abandoned.value if trip.abandoned else None) == row["abandoned"]


@pytest.mark.parametrize("outcome", CompilationOutcome)
def test_outcomes_are_an_enumeration(database: Database, outcome: CompilationOutcome) -> None:
    row = the_row(database, span_of(replace(with_ids(a_record(started_ns=NOW_NS)), outcome=outcome)))

    assert outcome.value == row["outcome"]
    assert {"t": "Nullable(Enum8('compiled' = 1, 'loaded' = 2, 'rekeyed' = 3))"} in database.rows(
        "SELECT toTypeName(outcome) AS t FROM kernel_trips"
    )


def test_outcome_that_only_a_newer_version_knows_spoils_no_other_row(database: Database) -> None:
    known, unknown = (with_ids(a_record(seq, started_ns=NOW_NS)) for seq in (0, 1))
    database.insert([span_of(known), span_of(unknown)])
    database.run(
        "CREATE TABLE changed AS otel_traces; "
        "INSERT INTO changed SELECT * REPLACE (mapUpdate(SpanAttributes, "
        "map('compute.kernel.compilation.outcome', 'downloaded')) AS SpanAttributes) FROM otel_traces "
        "WHERE SpanAttributes['compute.kernel.session.seq'] = '1'; "
        "ALTER TABLE otel_traces DELETE WHERE SpanAttributes['compute.kernel.session.seq'] = '1' "
        "SETTINGS mutations_sync = 1; "
        "INSERT INTO otel_traces SELECT * FROM changed"
    )

    assert [(0, "compiled"), (1, None)] == [
        (row["seq"], row["outcome"])
        for row in database.rows("SELECT seq, outcome FROM kernel_trips ORDER BY seq")
    ]


def test_spans_of_others_and_spans_beside_trips_are_left_out(database: Database) -> None:
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer
    others = [
        tracer("shop.web").start_span("GET /"),
        tracer("otel_kernel.torch").start_span("dynamo.frame", attributes={semconv.ROLE: "parent"}),
        tracer("shop.web").start_span("a copy", attributes={semconv.ROLE: "trip"}),
    ]
    for span in others:
        span.end()

    the_row(database, span_of(full_trip()), *(span for span in others if isinstance(span, ReadableSpan)))


def test_table_keeps_what_the_view_showed_and_each_trip_once(database: Database) -> None:
    before, after = (with_ids(a_record(seq, started_ns=NOW_NS)) for seq in (0, 1))
    full = the_row(database, span_of(full_trip()))
    database.insert([span_of(before)])
    with_table(database)
    database.insert([span_of(full_trip())])  # too old for the retention when the table was made
    database.insert([span_of(before), span_of(after)])
    database.insert([span_of(after)])

    rows = database.rows("SELECT * FROM kernel_trips ORDER BY seq")

    assert [0, 1, 12] == [row["seq"] for row in rows]
    assert full == rows[2]


def test_table_lets_texts_go_after_a_week_and_trips_after_a_year(database: Database) -> None:
    database.run(clickhouse.table())
    (now,) = database.rows("SELECT toUnixTimestamp(now()) AS seconds")
    day = 24 * 3600

    def of_age(seq: int, days: int) -> Trip:
        return with_ids(
            a_record(seq, started_ns=(now["seconds"] - days * day) * 10**9, ir="label 0:", source="ret")
        )

    database.insert(span_of(of_age(seq, days)) for seq, days in enumerate((6, 8, 364, 367)))
    database.run("OPTIMIZE TABLE kernel_trips_table FINAL")

    assert [(0, "label 0:", "ret"), (1, None, None), (2, None, None)] == [
        (row["seq"], row["ir"], row["source"])
        for row in database.rows("SELECT seq, ir, source FROM kernel_trips ORDER BY seq")
    ]


def test_queries_for_a_key_and_a_process_read_the_projections(database: Database) -> None:
    with_table(database)
    database.insert([span_of(with_ids(a_record(started_ns=NOW_NS)))])
    # Enough for a choice: ClickHouse reads 8192 rows at once in any case.
    database.run(
        "INSERT INTO kernel_trips_table SELECT * EXCEPT number REPLACE (number AS key_id, number AS seq, started + number AS started, "
        "lower(hex(MD5(toString(number % 1000)))) AS session) FROM kernel_trips_table CROSS JOIN numbers(50000) AS numbers; "
        "OPTIMIZE TABLE kernel_trips_table FINAL"
    )
    session = "SELECT lower(hex(MD5('7')))"

    for condition, projection in (("key_id = 7", "by_key"), (f"session = ({session})", "by_session")):
        plan = database.rows(f"EXPLAIN SELECT kernel, started FROM kernel_trips_table WHERE {condition}")

        assert any(projection in str(row) for row in plan), (condition, plan)
