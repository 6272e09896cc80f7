-- The tables that the Collector's ClickHouse exporter fills (contrib 0.161.0, columns of type Map), and a view of
-- kernel trips with typed columns. For ClickHouse 24.8 or later:
--
--   clickhouse-client --multiquery < clickhouse.sql
--   clickhouse-client --multiquery --database otel < clickhouse/view.sql

CREATE DATABASE IF NOT EXISTS otel;

CREATE TABLE IF NOT EXISTS otel.otel_traces
(
    Timestamp DateTime64(9) CODEC(Delta, ZSTD(1)),
    TraceId String CODEC(ZSTD(1)),
    SpanId String CODEC(ZSTD(1)),
    ParentSpanId String CODEC(ZSTD(1)),
    TraceState String CODEC(ZSTD(1)),
    SpanName LowCardinality(String) CODEC(ZSTD(1)),
    SpanKind LowCardinality(String) CODEC(ZSTD(1)),
    ServiceName LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ScopeName String CODEC(ZSTD(1)),
    ScopeVersion String CODEC(ZSTD(1)),
    SpanAttributes Map(LowCardinality(String), String) CODEC(ZSTD(3)),
    Duration UInt64 CODEC(ZSTD(1)),
    StatusCode LowCardinality(String) CODEC(ZSTD(1)),
    StatusMessage String CODEC(ZSTD(1)),
    Events Nested (
        Timestamp DateTime64(9),
        Name LowCardinality(String),
        Attributes Map(LowCardinality(String), String)
    ) CODEC(ZSTD(1)),
    Links Nested (
        TraceId String,
        SpanId String,
        TraceState String,
        Attributes Map(LowCardinality(String), String)
    ) CODEC(ZSTD(1)),
    INDEX by_trace TraceId TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toDate(Timestamp)
ORDER BY (ServiceName, toDateTime(Timestamp))
TTL toDate(Timestamp) + toIntervalDay(90)
SETTINGS ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS otel.otel_logs
(
    Timestamp DateTime64(9) CODEC(Delta, ZSTD(1)),
    TraceId String CODEC(ZSTD(1)),
    SpanId String CODEC(ZSTD(1)),
    TraceFlags UInt8,
    SeverityText LowCardinality(String) CODEC(ZSTD(1)),
    SeverityNumber UInt8,
    ServiceName LowCardinality(String) CODEC(ZSTD(1)),
    Body String CODEC(ZSTD(1)),
    ResourceSchemaUrl LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ScopeSchemaUrl LowCardinality(String) CODEC(ZSTD(1)),
    ScopeName String CODEC(ZSTD(1)),
    ScopeVersion LowCardinality(String) CODEC(ZSTD(1)),
    ScopeAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    LogAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    EventName String CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(Timestamp)
ORDER BY (ServiceName, toDateTime(Timestamp))
TTL toDate(Timestamp) + toIntervalDay(90)
SETTINGS ttl_only_drop_parts = 1;

-- One row a trip. A map gives '' for a name that is not there, so what may be absent is asked for first. A batch that
-- was sent twice is here twice: count distinct (session, seq). clickhouse/view.sql replaces it by one with all that
-- a trip has, its outcome an enumeration and its key numbers.
CREATE VIEW IF NOT EXISTS otel.kernel_trips AS
SELECT
    SpanAttributes['compute.kernel.session.id'] AS session,
    toInt64(SpanAttributes['compute.kernel.session.seq']) AS seq,
    SpanAttributes['compute.kernel.session.run'] AS run,
    ServiceName AS service,
    SpanAttributes['compute.kernel.runtime'] AS runtime,
    SpanAttributes['compute.kernel.layer'] AS layer,
    SpanAttributes['compute.kernel.name'] AS kernel,
    Timestamp AS started,
    toInt64(SpanAttributes['compute.kernel.compilation.duration_ns']) AS duration_ns,
    nullIf(SpanAttributes['compute.kernel.compilation.outcome'], '') AS outcome,
    nullIf(SpanAttributes['error.type'], '') AS error_type,
    nullIf(SpanAttributes['compute.kernel.key.id'], '') AS key_id,
    nullIf(SpanAttributes['compute.kernel.key.build_id'], '') AS key_build_id,
    nullIf(SpanAttributes['compute.kernel.target'], '') AS target,
    nullIf(SpanAttributes['compute.kernel.phase'], '') AS phase,
    if(mapContains(SpanAttributes, 'compute.kernel.ir.text'), SpanAttributes['compute.kernel.ir.text'], NULL) AS ir,
    nullIf(SpanAttributes['compute.kernel.ir.sha256'], '') AS ir_sha256,
    if(mapContains(SpanAttributes, 'compute.kernel.source.text'), SpanAttributes['compute.kernel.source.text'], NULL)
        AS source,
    nullIf(SpanAttributes['compute.kernel.source.sha256'], '') AS source_sha256,
    TraceId AS trace_id,
    SpanId AS span_id
FROM otel.otel_traces
WHERE SpanAttributes['compute.kernel.role'] = 'trip';
