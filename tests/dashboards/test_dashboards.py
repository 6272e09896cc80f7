"""The dashboards: whether Grafana can lay them out, and whether every query in them is one and finds something."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from alerts.promtool import CONFIG, RULES
from clickhouse.database import Database
from questions.telemetry import spans
from servers.debian import binary, missing
from servers.needing import need

from generators import clickhouse
from generators.dashboards import FLEET, RELEASE
from generators.fleet import SERVICE, processes
from generators.grafana import COLUMNS
from otel_kernel import semconv

FOLDER: Final = CONFIG / "grafana"
NAMES: Final = ("fleet", "release")

VARIABLES: Final = {
    "${service}": SERVICE,
    "${kernel}": "shop.kernels.score",
    "${before}": "1.4.0",
    "${after}": "1.5.0",
}
TIME_FILTER: Final = (
    re.compile(r"\$__timeFilter\((\w+)\)"),
    r"(\1 >= toDateTime('2026-11-30 00:00:00') AND \1 <= toDateTime('2026-11-30 23:59:59'))",
)
INTERVALS: Final = {"$__range": "1h", "$__interval": "1m", "$job": ".+"}


def dashboard(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return read


def panels(name: str) -> list[dict[str, Any]]:
    return [panel for panel in dashboard(name)["panels"] if panel["type"] != "row"]


def queries(name: str, language: str) -> dict[str, str]:
    """Return the queries of panels and variables by their titles."""
    of_panels = {
        panel["title"]: target[language]
        for panel in panels(name)
        for target in panel["targets"]
        if language in target
    }
    of_variables = {
        f"variable {variable['name']}": variable["definition"]
        for variable in dashboard(name)["templating"]["list"]
        if variable["type"] == "query"
        and (variable["datasource"]["type"] == "prometheus") == (language == "expr")
    }
    return {**of_panels, **of_variables}


def every_sql() -> list[Any]:
    return [
        pytest.param(query, id=f"{name}: {title}")
        for name in NAMES
        for title, query in queries(name, "rawSql").items()
    ]


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database() as made:
        made.run(clickhouse.view())
        made.insert(span for process in processes() for span in spans(process))
        yield made


@pytest.mark.parametrize(("name", "made"), [("fleet", FLEET), ("release", RELEASE)])
def test_files_are_what_the_code_makes(name: str, made: Any) -> None:
    assert made.to_json() == (FOLDER / f"{name}.json").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_unique_and_panels_lie_in_the_grid_and_on_no_other(name: str) -> None:
    every = dashboard(name)["panels"]

    assert len(every) == len({panel["id"] for panel in every})
    places = [panel["gridPos"] for panel in every]
    for place in places:
        assert 0 <= place["x"] < place["x"] + place["w"] <= COLUMNS
        assert place["h"] > 0
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]

        assert beside or above, (one, other)


@pytest.mark.parametrize("name", NAMES)
def test_data_sources_are_variables_and_titles_unique(name: str) -> None:
    titles = [panel["title"] for panel in panels(name)]

    assert len(titles) == len(set(titles))
    for panel in panels(name):
        for source in (panel["datasource"], *(target["datasource"] for target in panel["targets"])):
            assert source["uid"] in ("${prometheus}", "${clickhouse}")


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_that_is_used_is_one_of_the_dashboard(name: str) -> None:
    whole = dashboard(name)
    known = {variable["name"] for variable in whole["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps({**whole, "templating": None})))

    grafanas = {each for each in used if each.startswith("__")}
    linked = {"service"}  # of the dashboard that a link leads to
    assert used - grafanas - linked <= known, used


@pytest.mark.parametrize("query", every_sql())
def test_sql_finds_something_in_the_fleet(database: Database, query: str) -> None:
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    query = TIME_FILTER[0].sub(TIME_FILTER[1], query)

    assert "$" not in query
    assert [] != database.rows(query)


def every_expr() -> dict[str, str]:
    """Return the PromQL of both dashboards by its place, as Grafana sends it."""
    found = {f"{name}: {title}": expr for name in NAMES for title, expr in queries(name, "expr").items()}
    for title, expr in found.items():
        for name, value in INTERVALS.items():
            expr = expr.replace(name, value)
        found[title] = re.sub(r"^label_values\((.*), (\w+)\)$", r"count by (\2) (\1)", expr)
    return found


def test_promql_is_valid(tmp_path: Path) -> None:
    need(missing())
    rules = [{"record": f"panel:{number}", "expr": expr} for number, expr in enumerate(every_expr().values())]
    path = tmp_path / "panels.yaml"
    path.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))

    done = subprocess.run(
        [binary("promtool"), "check", "rules", "--lint=none", path],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert (0, "") == (done.returncode, done.stderr)


def test_promql_asks_for_metrics_and_labels_that_there_are() -> None:
    recorded = {
        rule["record"]
        for group in yaml.safe_load(RULES.read_text())["groups"]
        for rule in group["rules"]
        if "record" in rule
    }
    made = {
        f"{metric.name.replace('.', '_')}{'_seconds' if metric.unit == 's' else ''}"
        for metric in semconv.METRICS.values()
    }
    made |= {f"{name}_{part}" for name in made for part in ("count", "sum", "bucket")}
    labels = {name.replace(".", "_") for metric in semconv.METRICS.values() for name in metric.attributes}
    for title, expr in every_expr().items():
        asked = set(re.findall(r"\b(?:\w+:)*compute_kernel\w*(?::\w+)*", expr))

        assert asked <= recorded | made | labels, (title, asked - recorded - made - labels)
