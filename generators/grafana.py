"""Dashboards of Grafana as Python: panels with their queries, laid out row by row, and the JSON they make.

Only what our dashboards use. The JSON is the classic model, which every Grafana imports.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

COLUMNS: Final = 24
"""Of Grafana's grid."""

SCHEMA_VERSION: Final = 39

PROMETHEUS: Final = {"type": "prometheus", "uid": "${prometheus}"}
CLICKHOUSE: Final = {"type": "grafana-clickhouse-datasource", "uid": "${clickhouse}"}

Kind = Literal["stat", "timeseries", "table", "barchart"]

_TABLE, _TIMES = 1, 0
"""Formats of the data source for ClickHouse."""


@dataclass(frozen=True)
class PromQL:
    """A query for Prometheus."""

    expr: str
    legend: str = ""
    instant: bool = False

    def to_json(self, ref: str, _kind: Kind) -> dict[str, Any]:
        """Return the target."""
        return {
            "refId": ref,
            "datasource": PROMETHEUS,
            "expr": self.expr,
            "legendFormat": self.legend or "__auto",
            "instant": self.instant,
            "range": not self.instant,
            "interval": "1m",
        }


@dataclass(frozen=True)
class SQL:
    """A query for ClickHouse."""

    query: str

    def to_json(self, ref: str, kind: Kind) -> dict[str, Any]:
        """Return the target."""
        times = kind == "timeseries"
        return {
            "refId": ref,
            "datasource": CLICKHOUSE,
            "editorType": "sql",
            "queryType": "timeseries" if times else "table",
            "format": _TIMES if times else _TABLE,
            "rawSql": self.query,
        }


@dataclass(frozen=True)
class Panel:
    """One panel."""

    title: str
    kind: Kind
    query: PromQL | SQL
    width: int
    height: int = 8
    unit: str = "short"
    description: str = ""
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where a cell leads, by its column."""
    units: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of columns that have another one."""
    thresholds: tuple[tuple[float | None, str], ...] = ((None, "text"),)
    """Colours by the least value that has them."""

    def to_json(self, number: int, x: int, y: int) -> dict[str, Any]:
        """Return the panel with its id and its place."""
        steps = [{"value": value, "color": color} for value, color in self.thresholds]
        overrides = [
            *(
                _override(column, "links", [{"title": title_of(url), "url": url}])
                for column, url in self.links.items()
            ),
            *(_override(column, "unit", unit) for column, unit in self.units.items()),
        ]
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": PROMETHEUS if isinstance(self.query, PromQL) else CLICKHOUSE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [self.query.to_json("A", self.kind)],
            "fieldConfig": {
                "defaults": {"unit": self.unit, "thresholds": {"mode": "absolute", "steps": steps}},
                "overrides": overrides,
            },
            "options": _OPTIONS[self.kind],
        }


_OPTIONS: Final[dict[Kind, dict[str, Any]]] = {
    "stat": {
        "colorMode": "value",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    },
    "timeseries": {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["max"]}},
    "table": {"showHeader": True, "cellHeight": "sm"},
    "barchart": {"orientation": "horizontal", "legend": {"displayMode": "list", "placement": "bottom"}},
}


def title_of(url: str) -> str:
    """Return what a link says."""
    return "Look at this kernel" if "var-kernel" in url else "Open"


def _override(column: str, name: str, value: Any) -> dict[str, Any]:
    return {
        "matcher": {"id": "byName", "options": column},
        "properties": [{"id": name, "value": value}],
    }


@dataclass(frozen=True)
class Row:
    """A heading and the panels under it, from left to right."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Variable:
    """A variable that its reader chooses."""

    name: str
    label: str
    query: PromQL | SQL | str
    """The plugin of data sources to choose from, or a query for the values."""
    multi: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the variable."""
        common: dict[str, Any] = {"name": self.name, "label": self.label, "hide": 0}
        if isinstance(self.query, str):
            return {**common, "type": "datasource", "query": self.query, "refresh": 1}
        values: dict[str, Any] = {
            **common,
            "type": "query",
            "refresh": 2,
            "sort": 1,
            "multi": self.multi,
            "includeAll": self.multi,
        }
        if isinstance(self.query, PromQL):
            return {
                **values,
                "datasource": PROMETHEUS,
                "definition": self.query.expr,
                "query": {"query": self.query.expr, "refId": self.name},
                "allValue": ".+",
            }
        return {**values, "datasource": CLICKHOUSE, "definition": self.query.query, "query": self.query.query}


@dataclass(frozen=True)
class Dashboard:
    """A dashboard."""

    uid: str
    title: str
    description: str
    variables: Sequence[Variable]
    rows: Sequence[Row]
    time_from: str = "now-24h"

    def to_json(self) -> str:
        """Return the JSON that Grafana imports."""
        made: dict[str, Any] = {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["otel-kernel"],
            "schemaVersion": SCHEMA_VERSION,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "1m",
            "time": {"from": self.time_from, "to": "now"},
            "timezone": "browser",
            "templating": {"list": [variable.to_json() for variable in self.variables]},
            "annotations": {"list": []},
            "links": [
                {
                    "type": "dashboards",
                    "title": "Kernel compilation",
                    "tags": ["otel-kernel"],
                    "asDropdown": True,
                    "includeVars": False,
                    "keepTime": True,
                }
            ],
            "panels": list(self._panels()),
        }
        return json.dumps(made, indent=2) + "\n"

    def _panels(self) -> Iterator[dict[str, Any]]:
        number, y = 1, 0
        for row in self.rows:
            yield {
                "id": number,
                "type": "row",
                "title": row.title,
                "collapsed": False,
                "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
                "panels": [],
            }
            number, y, x, tallest = number + 1, y + 1, 0, 0
            for panel in row.panels:
                if x + panel.width > COLUMNS:
                    x, y, tallest = 0, y + tallest, 0
                yield panel.to_json(number, x, y)
                number, x, tallest = number + 1, x + panel.width, max(tallest, panel.height)
            y += tallest
