"""The questions and alerts in TraceQL, by its grammar and the names in it; the questions in PromQL, by Prometheus."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from alerts.promtool import CONFIG, DURATION, RULES, Series, rules, series
from servers import debian, traceql_grammar
from servers.needing import need

from generators.fleet import Process, processes
from generators.questions import QUESTIONS
from otel_kernel import semconv
from otel_kernel.records import Trip

ALERTS: Final[dict[str, str]] = yaml.safe_load((CONFIG / "tempo" / "alerts.yaml").read_text())
TRACEQL: Final = {
    **{question.sql: question.traceql for question in QUESTIONS if question.traceql},
    **ALERTS,
}
PROMQL: Final = {question.sql: question.promql for question in QUESTIONS if question.promql}

GRAPH, TRITON, NUMBA = "torch.inductor.graph", "triton", "numba"
ERROR = "triton.compiler.errors.CompilationError"

ANSWERS: Final[dict[str, dict[str, list[tuple[dict[str, str], float]]]]] = {
    "06-ready": {
        "17:30": [({"compute_kernel_layer": GRAPH}, 1), ({"compute_kernel_layer": TRITON}, 2)],
        "16:50": [],
    },
    "07-store-used": {
        "12:30": [({"compute_kernel_layer": NUMBA, "compute_kernel_store_stored": "false"}, 2)],
        "08:30": [
            ({"compute_kernel_layer": NUMBA, "compute_kernel_store_stored": "false"}, 2),
            ({"compute_kernel_layer": NUMBA, "compute_kernel_store_stored": "true"}, 1),
            ({"compute_kernel_layer": GRAPH, "compute_kernel_store_stored": "true"}, 1),
            ({"compute_kernel_layer": TRITON, "compute_kernel_store_stored": "true"}, 3),
        ],
    },
    "08-new-image": {
        "12:30": [
            ({"compute_kernel_layer": GRAPH}, 1),
            ({"compute_kernel_layer": TRITON}, 1),
            ({"compute_kernel_layer": NUMBA}, 0.5),
        ],
        "16:30": [({"compute_kernel_layer": GRAPH}, 1), ({"compute_kernel_layer": TRITON}, 0.5)],
    },
    "12-failed-or-hangs": {"17:30": [({"error_type": ERROR}, 1)], "12:30": []},
}
"""What the fleet's metrics answer to PromQL at some times of its day, beside the job."""


def test_traceql_is_in_the_grammar() -> None:
    need(traceql_grammar.missing())

    assert {name: [] for name in TRACEQL} == dict(
        zip(TRACEQL, traceql_grammar.wrong_places(list(TRACEQL.values())), strict=True)
    )
    assert [[13]] == traceql_grammar.wrong_places(["{ span.foo = }"])


@pytest.mark.parametrize("name", TRACEQL)
def test_traceql_asks_for_attributes_that_spans_have(name: str) -> None:
    asked = re.findall(r"\bspan\.([\w.]+)", TRACEQL[name])

    assert [] == [each for each in asked if semconv.definition(each) is None]


@pytest.mark.parametrize("name", TRACEQL)
def test_traceql_compares_with_values_that_attributes_have(name: str) -> None:
    for attribute, value in re.findall(r'\bspan\.([\w.]+) !?= "([^"]*)"', TRACEQL[name]):
        definition = semconv.definition(attribute)
        assert definition is not None

        assert not definition.values or value in definition.values, f"{attribute} is never {value}"


def test_alerts_in_traceql_are_alerts() -> None:
    assert set(ALERTS) <= set(rules())


def _label(name: str) -> str:
    return name.replace(".", "_")


def _metrics(process: Process) -> Series:
    """Return what a process counts, minute by minute of its day, as long as it lives and ten minutes more."""
    counted: dict[str, list[int]] = {}
    for trip in process.trips:
        if trip.duration_ns is not None and trip.abandoned is None:
            ended = (trip.started_ns + trip.duration_ns) // 10**9 % (24 * 3600) // 60 + 1
            counted.setdefault(series(f"{DURATION}_count", **_labels(process, trip)), []).append(ended)
    last = max(max(minutes) for minutes in counted.values()) + 10
    return {
        name: [
            sum(1 for each in minutes if each <= minute) if min(minutes) <= minute <= last else None
            for minute in range(18 * 60)
        ]
        for name, minutes in counted.items()
    }


def _labels(process: Process, trip: Trip) -> dict[str, str]:
    attributes: dict[str, Any] = {
        semconv.RUNTIME: trip.runtime,
        semconv.LAYER: trip.layer,
        semconv.OUTCOME: trip.outcome.value if trip.outcome else None,
        semconv.ERROR_TYPE: trip.error_type,
        **{name: trip.attributes.get(name) for name in (semconv.PHASE, semconv.STORE_STORED)},
    }
    labels = {
        _label(name): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in attributes.items()
        if value is not None
    }
    return {"job": process.resource["service.name"], "instance": process.name, **labels}


def test_promql_answers_as_is_known(tmp_path: Path) -> None:
    need(debian.missing())
    every: Series = {name: values for process in processes() for name, values in _metrics(process).items()}
    tests = [
        {
            "expr": PROMQL[name],
            "eval_time": f"{int(time[:2]) * 60 + int(time[3:])}m",
            "exp_samples": [
                {"labels": series("", job="shop/ranking", **labels), "value": value}
                for labels, value in answers
            ],
        }
        for name, by_time in ANSWERS.items()
        for time, answers in by_time.items()
    ]
    case = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": each, "values": " ".join("_" if v is None else f"{v:g}" for v in values)}
                    for each, values in every.items()
                ],
                "promql_expr_test": tests,
            }
        ],
    }
    path = tmp_path / "case.yaml"
    path.write_text(json.dumps(case))
    done = subprocess.run(
        [debian.binary("promtool"), "test", "rules", path], capture_output=True, encoding="utf-8", check=False
    )

    assert PROMQL.keys() == ANSWERS.keys()
    assert 0 == done.returncode, done.stdout + done.stderr
