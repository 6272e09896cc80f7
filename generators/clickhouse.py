"""The typed view and table of trips in ClickHouse, made from the names in `semconv`.

Their columns have the names of a recording's, so that a query for one is nearly a query for the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from otel_kernel import semconv
from otel_kernel.recording.schema import ATTRIBUTE_COLUMNS
from otel_kernel.records import Abandoned, CompilationOutcome


@dataclass(frozen=True)
class _Column:
    """One column: its type in a table, and how a span of the exporter's table gives it."""

    name: str
    kind: str
    value: str
    codec: str = "ZSTD(1)"
    ttl: str = ""


def _attribute(name: str) -> str:
    return f"SpanAttributes['{name}']"


def _resource(name: str) -> str:
    return f"ResourceAttributes['{name}']"


def _if_there(name: str, value: str) -> str:
    # A map answers '' for a name that it does not hold.
    return f"if(mapContains(SpanAttributes, '{name}'), {value}, NULL)"


def _enum(values: Sequence[str]) -> str:
    members = (f"'{value}' = {number}" for number, value in enumerate(values, 1))
    return f"Enum8({', '.join(members)})"


def _known(name: str, values: Sequence[str]) -> str:
    # A value that only a newer version knows is NULL here, and no error of the whole query.
    listed = ", ".join(f"'{value}'" for value in values)
    return f"if({_attribute(name)} IN ({listed}), {_attribute(name)}, NULL)"


def _text(name: str) -> str:
    return _if_there(name, _attribute(name))


def _uint128(name: str) -> str:
    return _if_there(name, f"reinterpretAsUInt128(reverse(unhex({_attribute(name)})))")


def _family(prefix: str, value: str) -> str:
    return (
        f"mapFromArrays(arrayMap(name -> substring(name, {len(prefix) + 1}), arrayFilter(name -> startsWith(name, "
        f"'{prefix}'), mapKeys(SpanAttributes))::Array(String)), arrayMap(name -> {value}, arrayFilter(name -> "
        f"startsWith(name, '{prefix}'), mapKeys(SpanAttributes))))"
    )


_OUTCOMES: Final = [outcome.value for outcome in CompilationOutcome]
_ABANDONED: Final = [why.value for why in Abandoned]
_STATES: Final = ["record", "failed", "abandoned"]


def _columns() -> Iterator[_Column]:
    low = "LowCardinality(String)"
    yield _Column("service", low, "ServiceName")
    yield _Column("service_version", low, _resource("service.version"))
    yield _Column("instance", "String", _resource("service.instance.id"))
    yield _Column("pod", low, _resource("k8s.pod.name"))
    yield _Column("host", low, _resource("host.name"))
    yield _Column("run", "String", _attribute(semconv.SESSION_RUN))
    yield _Column("session", "String", _attribute(semconv.SESSION_ID))
    yield _Column("seq", "Int64", f"toInt64OrZero({_attribute(semconv.SESSION_SEQ)})")
    yield _Column("parent_seq", "Nullable(Int64)", f"toInt64OrNull({_attribute(semconv.SESSION_PARENT_SEQ)})")
    yield _Column("runtime", low, _attribute(semconv.RUNTIME))
    yield _Column("layer", low, _attribute(semconv.LAYER))
    yield _Column("kernel", low, _attribute(semconv.KERNEL_NAME))
    yield _Column("started", "DateTime64(9)", "Timestamp", "Delta, ZSTD(1)")
    yield _Column("started_ns", "Int64", "toUnixTimestamp64Nano(Timestamp)", "Delta, ZSTD(1)")
    yield _Column("duration_ns", "UInt64", f"toUInt64OrZero({_attribute(semconv.DURATION_NS)})")
    yield _Column(
        "state",
        _enum(_STATES),
        f"multiIf(mapContains(SpanAttributes, '{semconv.OUTCOME}'), 'record', "
        f"mapContains(SpanAttributes, '{semconv.ABANDONED}'), 'abandoned', 'failed')",
    )
    yield _Column("outcome", f"Nullable({_enum(_OUTCOMES)})", _known(semconv.OUTCOME, _OUTCOMES))
    yield _Column("abandoned", f"Nullable({_enum(_ABANDONED)})", _known(semconv.ABANDONED, _ABANDONED))
    yield _Column("error_type", "LowCardinality(Nullable(String))", _text(semconv.ERROR_TYPE))
    yield _Column("message", "Nullable(String)", "nullIf(StatusMessage, '')")
    yield _Column("key_id", "Nullable(UInt128)", _uint128(semconv.KEY_ID))
    yield _Column("key_build_id", "Nullable(UInt128)", _uint128(semconv.KEY_BUILD_ID))
    yield _Column("trace_id", "String", "TraceId")
    yield _Column("span_id", "String", "SpanId")
    yield _Column("parent_span_id", "String", "ParentSpanId")
    for name, column in ATTRIBUTE_COLUMNS.items():
        yield _attribute_column(name, column)
    yield _Column(
        "key_components", "Map(String, String)", _family(semconv.KEY_COMPONENT, "SpanAttributes[name]")
    )
    yield _Column(
        "stages", "Map(String, UInt64)", _family(semconv.STAGE, "toUInt64OrZero(SpanAttributes[name])")
    )
    for prefix, sha256, size, text in (
        ("ir", semconv.IR_SHA256, semconv.IR_SIZE, semconv.IR_TEXT),
        ("source", semconv.SOURCE_SHA256, semconv.SOURCE_SIZE, semconv.SOURCE_TEXT),
    ):
        yield _Column(f"{prefix}_sha256", "Nullable(String)", _text(sha256))
        yield _Column(f"{prefix}_size", "Nullable(Int64)", f"toInt64OrNull({_attribute(size)})")
        yield _Column(
            prefix, "Nullable(String)", _text(text), "ZSTD(3)", "toDateTime(started) + INTERVAL 7 DAY"
        )


def _attribute_column(name: str, column: str) -> _Column:
    definition = semconv.ATTRIBUTES[name]
    if definition.type is bool:
        return _Column(column, "Nullable(Bool)", _if_there(name, f"{_attribute(name)} = 'true'"))
    if definition.type is int:
        return _Column(column, "Nullable(Int64)", f"toInt64OrNull({_attribute(name)})")
    return _Column(column, "Nullable(String)", _text(name))


COLUMNS: Final = tuple(_columns())

_LISTED: Final = (
    "service",
    "run",
    "session",
    "seq",
    "rank",
    "layer",
    "kernel",
    "specialization",
    "started",
    "duration_ns",
    "outcome",
    "key_id",
    "key_build_id",
)
"""What the projections hold: a whole row in each would triple the table."""

_FROM: Final = f"""\
FROM otel_traces
WHERE startsWith(ScopeName, '{semconv.SCOPE_PREFIX}') AND SpanAttributes['{semconv.ROLE}'] = 'trip'"""


def select() -> str:
    """Return the statement that reads trips from the exporter's table."""
    lines = (f"    CAST({column.value} AS {column.kind}) AS {column.name}" for column in COLUMNS)
    return "SELECT\n" + ",\n".join(lines) + f"\n{_FROM}"


def view() -> str:
    """Return the SQL of the view `kernel_trips` over the exporter's table."""
    return f"""\
-- Trips as typed rows, read from the spans that the Collector's ClickHouse exporter has written.
-- Generated by `python -m generators`. To be run in the exporter's database, after the exporter has made its table.
--
-- A batch that the Collector sent twice is here twice; `table.sql` keeps each trip once, and is made for millions.

CREATE OR REPLACE VIEW kernel_trips AS
{select()};
"""


def table() -> str:
    """Return the SQL of the table `kernel_trips_table` and of what fills it."""
    width = max(len(column.name) for column in COLUMNS)
    listed = ", ".join(_LISTED)
    lines = "\n".join(
        f"    {column.name:{width}} {column.kind} CODEC({column.codec})"
        + (f" TTL {column.ttl}" if column.ttl else "")
        + ","
        for column in COLUMNS
    )
    return f"""\
-- The same rows as `view.sql`, kept: sorted for the questions that are asked of kernels, each trip once, for longer
-- than all the other spans. Generated by `python -m generators`. To be run after `view.sql`, and once.
--
-- What is in `otel_traces` already comes in by the statement at the end, in one go.

CREATE TABLE IF NOT EXISTS kernel_trips_table
(
{lines}

    -- Where a key or a process is asked for: what lists show, sorted by it. A bloom filter where it is one trace.
    PROJECTION by_key (SELECT {listed} ORDER BY key_id, started),
    PROJECTION by_session (SELECT {listed} ORDER BY session, seq),
    INDEX traces trace_id TYPE bloom_filter(0.001) GRANULARITY 1
)
-- A batch may arrive twice: rows of the same sorting key are one.
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(started)
ORDER BY (service, layer, kernel, started, session, seq)
-- Texts go after a week, as their columns say; trips after a year.
TTL toDateTime(started) + INTERVAL 1 YEAR
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 0, deduplicate_merge_projection_mode = 'rebuild';

CREATE MATERIALIZED VIEW IF NOT EXISTS kernel_trips_to_table TO kernel_trips_table AS
{select()};

INSERT INTO kernel_trips_table SELECT * FROM kernel_trips;

-- From here on every query that names `kernel_trips` reads the table.
CREATE OR REPLACE VIEW kernel_trips AS SELECT * FROM kernel_trips_table FINAL;
"""
