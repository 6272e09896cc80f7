"""Spans as the Collector's ClickHouse exporter writes them: maps of strings, ids in hex, times in ns."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from servers.collector import CONFIGURATIONS

_KINDS = ("Unspecified", "Internal", "Server", "Client", "Producer", "Consumer")
_CODES = ("Unset", "Ok", "Error")


def rows_of(request: ExportTraceServiceRequest) -> Iterator[dict[str, Any]]:
    """Yield one row a span."""
    for resource_spans in request.resource_spans:
        resource = _map(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield {
                    "Timestamp": span.start_time_unix_nano,
                    "TraceId": span.trace_id.hex(),
                    "SpanId": span.span_id.hex(),
                    "ParentSpanId": span.parent_span_id.hex(),
                    "TraceState": span.trace_state,
                    "SpanName": span.name,
                    "SpanKind": _KINDS[span.kind],
                    "ServiceName": resource.get("service.name", ""),
                    "ResourceAttributes": resource,
                    "ScopeName": scope_spans.scope.name,
                    "ScopeVersion": scope_spans.scope.version,
                    "SpanAttributes": _map(span.attributes),
                    "Duration": span.end_time_unix_nano - span.start_time_unix_nano,
                    "StatusCode": _CODES[span.status.code],
                    "StatusMessage": span.status.message,
                }


def _map(pairs: Iterable[KeyValue]) -> dict[str, str]:
    return {pair.key: _string(pair.value) for pair in pairs}


def _string(value: AnyValue) -> str:
    kind = value.WhichOneof("value")
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    if kind == "bool_value":
        return "true" if value.bool_value else "false"
    return str(getattr(value, kind)) if kind else ""


def chdb_session(folder: Path) -> Any:
    """Return a session of ClickHouse's engine on a folder, a context manager; a process has one at a time."""
    from chdb.session import Session

    return cast("Any", Session(str(folder)))


def make_tables(session: Any) -> None:
    """Make the tables of `clickhouse.sql`."""
    sql = re.sub(r"^--.*$", "", (CONFIGURATIONS / "clickhouse.sql").read_text(), flags=re.MULTILINE)
    for statement in sql.split(";"):
        if statement.strip():
            session.query(statement)


def insert(session: Any, table: str, rows: Iterable[dict[str, Any]]) -> None:
    """Insert rows into a table of chdb."""
    lines = "\n".join(json.dumps({**row, "Timestamp": _seconds(row["Timestamp"])}) for row in rows)
    session.query(f"INSERT INTO {table} FORMAT JSONEachRow {lines}")


def _seconds(ns: int) -> str:
    return f"{ns // 1_000_000_000}.{ns % 1_000_000_000:09d}"
