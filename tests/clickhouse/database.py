"""A ClickHouse in this process, and spans as the exporter writes them into it."""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final

from opentelemetry.sdk.trace import ReadableSpan

TABLES: Final = (Path(__file__).parents[2] / "collector-config" / "clickhouse.sql").read_text()
"""Of the Collector's exporter, as they are deployed."""


class _Server:
    """The one ClickHouse that a process can have, for as long as a database is open."""

    def __init__(self) -> None:
        self._open = 0
        self._session: Any = None
        self._folder = ""

    def opened(self) -> None:
        """Start it, if it is the first database."""
        if not self._open:
            chdb: Any = import_module("chdb.session")  # half typed
            self._folder = tempfile.mkdtemp(prefix="clickhouse-")
            self._session = chdb.Session(self._folder)
        self._open += 1

    def closed(self) -> None:
        """End it, if it was the last one."""
        self._open -= 1
        if not self._open:
            self._session.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def query(self, database: str, statement: str, parameters: Mapping[str, str]) -> Any:
        """Return what a statement answers, a JSON object a row."""
        self._session.query(f"USE {database}")
        return self._session.query(statement, "JSONEachRow", params=dict(parameters))


_server = _Server()


class Database:
    """A new database with the tables that the Collector's exporter fills, to be closed."""

    _numbers: ClassVar = itertools.count()

    def __init__(self) -> None:
        _server.opened()
        self.name = f"otel_{next(self._numbers)}"
        _server.query("default", f"CREATE DATABASE {self.name}", {})
        self.run(TABLES.replace("otel.", f"{self.name}."))
        for table in ("otel_traces", "otel_logs"):
            self.run(f"ALTER TABLE {table} REMOVE TTL")  # tests write what is older

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        _server.closed()

    def run(self, script: str) -> None:
        """Execute statements."""
        for statement in statements(script):
            self._query(statement)

    def rows(self, query: str, **parameters: str) -> list[dict[str, Any]]:
        """Return the rows of one query; integers of more than 32 bits come as such.

        Args:
            query: with or without comments.
            parameters: `{name:Type}` in it.
        """
        settings = (
            "SETTINGS output_format_json_quote_64bit_integers = 0, output_format_json_quote_denormals = 0"
        )
        (statement,) = statements(query)
        answer = self._query(f"SELECT * FROM ({statement}) {settings}", parameters)
        return [json.loads(line) for line in str(answer).splitlines()]

    def insert(self, spans: Iterable[ReadableSpan]) -> None:
        """Insert spans as the Collector's exporter does."""
        self._insert("otel_traces", map(row_of, spans))

    def insert_events(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Insert rows of log events."""
        self._insert("otel_logs", rows)

    def _insert(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        lines = "\n".join(map(json.dumps, rows))
        self._query(f"INSERT INTO {table} FORMAT JSONEachRow {lines}")

    def _query(self, statement: str, parameters: Mapping[str, str] | None = None) -> Any:
        return _server.query(self.name, statement, parameters or {})


def statements(script: str) -> Sequence[str]:
    """Return the statements of a script, without comments; no text in ours holds a semicolon or two dashes."""
    lines = (line.partition("--")[0] for line in script.splitlines())
    return [statement.strip() for statement in "\n".join(lines).split(";") if statement.strip()]


def row_of(span: ReadableSpan) -> dict[str, Any]:
    """Return the row that the exporter makes of a span: every value of a map is text."""
    context = span.get_span_context()
    assert context is not None
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.instrumentation_scope is not None
    resource = texts(span.resource.attributes)
    return {
        "Timestamp": moment(span.start_time),
        "TraceId": f"{context.trace_id:032x}",
        "SpanId": f"{context.span_id:016x}",
        "ParentSpanId": f"{span.parent.span_id:016x}" if span.parent else "",
        "TraceState": "",
        "SpanName": span.name,
        "SpanKind": span.kind.name.capitalize(),
        "ServiceName": resource.get("service.name", ""),
        "ResourceAttributes": resource,
        "ScopeName": span.instrumentation_scope.name,
        "ScopeVersion": span.instrumentation_scope.version or "",
        "SpanAttributes": texts(span.attributes or {}),
        "Duration": span.end_time - span.start_time,
        "StatusCode": span.status.status_code.name.capitalize(),
        "StatusMessage": span.status.description or "",
        "Events.Timestamp": [],
        "Events.Name": [],
        "Events.Attributes": [],
        "Links.TraceId": [],
        "Links.SpanId": [],
        "Links.TraceState": [],
        "Links.Attributes": [],
    }


def moment(time_ns: int) -> str:
    """Return a time as DateTime64(9) reads it."""
    return f"{time_ns // 10**9}.{time_ns % 10**9:09}"


def texts(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Return attributes as the exporter writes them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in attributes.items()
    }
