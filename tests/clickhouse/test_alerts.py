"""The alerts by kernel: what ClickHouse says when one fires."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
from alerts.promtool import CONFIG, rules
from example_trips import a_record, other_session
from mapping.carriers import span_of, with_ids
from questions.telemetry import spans

from clickhouse.database import Database
from generators import clickhouse
from generators.fleet import processes
from otel_kernel import semconv

SQL: Final = CONFIG / "clickhouse" / "alerts"

MODEL, SCORE = "shop.model.Ranker.forward", "shop.kernels.score"


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database() as made:
        made.run(clickhouse.view())
        made.insert(span for process in processes() for span in spans(process))
        yield made


def _asked(database: Database, name: str, now: str, columns: str) -> list[tuple[Any, ...]]:
    rows = database.rows((SQL / f"{name}.sql").read_text(), now=now)
    return [tuple(row[column] for column in columns.split()) for row in rows]


def test_what_compiled_while_serving_is_listed(database: Database) -> None:
    assert [(MODEL, "f16[7, 512]", 31), (SCORE, "(x: *fp16, BLOCK=7) num_warps=4", 6)] == _asked(
        database, "compiled-while-serving", "2026-11-30 17:30:00", "kernel specialization slowest_s"
    )[:2]
    assert [] == _asked(database, "compiled-while-serving", "2026-11-30 16:59:00", "kernel")


def test_slow_compiles_have_thresholds_by_runtime_and_name_the_longest_stage(database: Database) -> None:
    assert [(MODEL, "ranking-cold-0", 130, "compile_kernels")] == _asked(
        database, "slow-compiles", "2026-11-30 08:30:00", "kernel pod seconds longest_stage"
    )
    assert [] == _asked(database, "slow-compiles", "2026-11-30 17:30:00", "kernel")


def test_failed_compiles_are_listed_with_their_error(database: Database) -> None:
    assert [("shop.kernels.attention", "triton.compiler.errors.CompilationError", 1)] == _asked(
        database, "failed-compiles", "2026-11-30 17:30:00", "kernel error_type trips"
    )


def test_kernels_of_which_the_loaded_share_collapsed_are_listed(database: Database) -> None:
    assert [(MODEL, 1, 0, 0.83)] == _asked(
        database, "loaded-share", "2026-11-30 17:30:00", "kernel records share share_before"
    )
    assert [] == _asked(database, "loaded-share", "2026-11-30 12:10:00", "kernel")


def test_what_the_store_does_not_take_is_listed_with_the_reason(database: Database) -> None:
    assert [("shop.pricing.total", "OSError: [Errno 30] Read-only file system", 2)] == _asked(
        database, "store-takes-nothing", "2026-11-30 12:30:00", "kernel store_reason trips"
    )


def test_storm_is_one_process_that_compiles_one_kernel_again_and_again() -> None:
    noon_ns = 1_796_040_000 * 10**9
    of_one = (
        with_ids(
            a_record(seq, started_ns=noon_ns + seq, attributes={semconv.SPECIALIZATION: f"n={seq % 40}"})
        )
        for seq in range(60)
    )
    of_many = (
        with_ids(replace(a_record(seq, started_ns=noon_ns), session=other_session(seq))) for seq in range(60)
    )
    starting = (
        with_ids(
            a_record(
                seq, session=other_session(99), started_ns=noon_ns, attributes={semconv.PHASE: "startup"}
            )
        )
        for seq in range(60)
    )
    with Database() as database:
        database.run(clickhouse.view())
        database.insert(span_of(trip) for trips in (of_one, of_many, starting) for trip in trips)

        assert [("5" * 32, "shop.discount", 60, 40)] == _asked(
            database, "recompilation-storms", "2026-11-30 12:30:00", "session kernel compiled specializations"
        )


def test_every_file_says_which_alert_it_is_for() -> None:
    named = {path.read_text().split()[1].rstrip(",") for path in SQL.glob("*.sql")}

    assert 6 == len(named)
    assert named <= set(rules())


def test_actions_of_alerts_name_files_that_are_there() -> None:
    for alert, rule in rules().items():
        for word in rule["annotations"]["action"].split():
            path = word.rstrip(":;,.") if word.rstrip(":;,.").endswith(".sql") else None

            assert path is None or (CONFIG / path).exists(), alert
