"""1,000,000 trips in ClickHouse: the view over the exporter's table beside the table of trips.

The rows are made by ClickHouse itself: five services of two releases, 300 kernels, 1,000 processes, 38 attributes.
Each query is timed by the wall clock, since ClickHouse works in threads of its own; the best of a few.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from clickhouse.database import Database

from benchmarks.harness import Line, shown
from generators import clickhouse
from otel_kernel import semconv

_TRIPS: Final = 1_000_000
_TIMES: Final = 5

_ATTRIBUTES: Final = {
    semconv.ROLE: "'trip'",
    semconv.KERNEL_NAME: "kernel",
    semconv.RUNTIME: "'triton'",
    semconv.LAYER: "'triton'",
    semconv.SESSION_ID: "session",
    semconv.SESSION_RUN: "run",
    semconv.SESSION_SEQ: "toString(number % 1000)",
    semconv.RECORD_VERSION: "'1'",
    semconv.RECORD_SIZE: "'38'",
    semconv.RECORD_LENGTH: "'900'",
    semconv.KEY_ID: "lower(hex(MD5(concat(kernel, toString(number % 50)))))",
    semconv.KEY_BUILD_ID: "lower(hex(MD5('triton 3.6')))",
    semconv.OUTCOME: "if(number % 5 = 0, 'compiled', 'loaded')",
    semconv.DURATION_NS: "toString(took)",
    semconv.OUTCOME_FROM: "'runtime'",
    semconv.STORE_KIND: "'triton.file'",
    semconv.STORE_LOCATION: "'/var/cache/triton'",
    semconv.STORE_ENTRY: "lower(hex(MD5(kernel)))",
    semconv.STORE_STORED: "'true'",
    semconv.TARGET: "'cuda:90'",
    semconv.DEVICE: "'cuda:0'",
    semconv.DEVICE_LOADED: "'true'",
    semconv.ARTIFACT_SIZE: "'22025'",
    semconv.SPECIALIZATION: "concat('BLOCK=', toString(number % 50))",
    semconv.BUILD: "'triton 3.6.0'",
    semconv.IDENTITY: "lower(hex(MD5(concat(kernel, toString(number % 50)))))",
    semconv.PHASE: "if(number % 100 = 0, 'serving', 'startup')",
    semconv.RANK: "toString(number % 8)",
    semconv.PROCESS_PID: "'4711'",
    semconv.THREAD_ID: "'4712'",
    **{f"{semconv.STAGE}{name}": "toString(intDiv(took, 5))" for name in ("ttir", "ttgir", "llir", "ptx")},
    f"{semconv.KEY_COMPONENT}source": "lower(hex(MD5(kernel)))",
    f"{semconv.KEY_COMPONENT}signature": "'*fp32 *fp32 i32'",
    semconv.SOURCE_SHA256: "lower(hex(SHA256(kernel)))",
    semconv.SOURCE_SIZE: "'3280'",
}

_FILL: Final = f"""
INSERT INTO otel_traces
    (Timestamp, TraceId, SpanId, SpanName, SpanKind, ServiceName, ResourceAttributes, ScopeName, SpanAttributes, Duration, StatusCode)
SELECT
    fromUnixTimestamp64Nano(toInt64(toUnixTimestamp(now())) * 1000000000 - toInt64(number * 600000000)),
    lower(hex(MD5(toString(intDiv(number, 20))))),
    lower(hex(sipHash64(number))),
    concat('compile ', kernel),
    'Internal',
    concat('shop/', toString(number % 5)),
    map('service.version', if(number < {_TRIPS // 2}, '1.5.0', '1.4.0'), 'k8s.pod.name', session),
    'otel_kernel.triton',
    map({", ".join(f"'{name}', {value}" for name, value in _ATTRIBUTES.items())}),
    took,
    'Unset'
FROM (
    SELECT
        number,
        concat('shop.kernels.k', toString(cityHash64(number) % 300)) AS kernel,
        lower(hex(MD5(concat('s', toString(intDiv(number, 1000)))))) AS session,
        lower(hex(MD5(concat('r', toString(intDiv(number, 8000)))))) AS run,
        1000000 + cityHash64(number, 1) % 5000000000 AS took
    FROM numbers({_TRIPS})
)
SETTINGS max_partitions_per_insert_block = 1000
"""

QUERIES: Final = {
    "loaded share of each kernel of a service": "SELECT kernel, countIf(outcome = 'loaded') / count() FROM {} "
    "WHERE service = 'shop/1' GROUP BY kernel",
    "slowest compiles of a day": "SELECT kernel, duration_ns FROM {} WHERE started > now() - INTERVAL 1 DAY "
    "AND outcome = 'compiled' ORDER BY duration_ns DESC LIMIT 10",
    "one kernel, day by day": "SELECT toStartOfDay(started) AS day, quantile(0.99)(duration_ns) FROM {} "
    "WHERE service = 'shop/1' AND layer = 'triton' AND kernel = 'shop.kernels.k7' GROUP BY day",
    "one process": "SELECT seq, kernel, outcome, duration_ns FROM {} WHERE session = @session ORDER BY seq",
    "one key": "SELECT started, outcome FROM {} WHERE key_id = @key_id ORDER BY started",
    "one trace": "SELECT kernel, duration_ns FROM {} WHERE trace_id = @trace_id",
}


def figures() -> dict[str, dict[str, float]]:
    """Return for each query the milliseconds that it takes on the view, the table, and the table's rows as they are."""
    with Database() as database:
        database.run(_FILL)
        database.run(clickhouse.view())
        database.run("CREATE VIEW kernel_trips_view AS " + clickhouse.select())
        database.run(clickhouse.table())
        database.run("OPTIMIZE TABLE kernel_trips_table FINAL")
        (one,) = database.rows(
            "SELECT session, trace_id, toString(assumeNotNull(key_id)) AS key_id FROM kernel_trips_table LIMIT 1 OFFSET 500000"
        )
        found: dict[str, dict[str, float]] = {}
        for name, query in QUERIES.items():
            for field, value in one.items():
                query = query.replace(
                    f"@{field}", f"'{value}'" if field != "key_id" else f"toUInt128('{value}')"
                )
            found[name] = {
                relation: 1000 * min(_seconds(database, query.format(relation)) for _ in range(_TIMES))
                for relation in ("kernel_trips_view", "kernel_trips", "kernel_trips_table")
            }
        return found


def _seconds(database: Database, query: str) -> float:
    started = time.perf_counter()
    database.run(query)
    return time.perf_counter() - started


def lines() -> Iterator[Line]:
    """Measure, print the milliseconds, and yield how many times as long the view takes as the table."""
    for name, of in figures().items():
        print(f"| {name} | " + " | ".join(f"{value:.1f} ms" for value in of.values()) + " |")
        yield shown(f"{name}, of 1,000,000: view / table", [of["kernel_trips_view"] / of["kernel_trips"]])
