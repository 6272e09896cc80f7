"""The rules for Prometheus, by its own tool: where each alert fires and where it does not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from servers.debian import binary

from alerts.cases import CASES, KINDS
from alerts.promtool import CONFIG, RULES, Case, complaints, rules


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.alert}: {case.name}") for case in CASES])
def test_alert_does_what_the_case_says(case: Case, tmp_path: Path) -> None:
    said = complaints(case, tmp_path)

    assert said == "", said


def test_every_alert_has_firing_and_silent_cases_and_one_of_each_kind() -> None:
    for alert in rules():
        cases = [case for case in CASES if case.alert == alert]

        assert {True, False} == {case.fires for case in cases}, alert
        for kind in KINDS:
            assert any(case.name.startswith(kind) for case in cases), f"{alert}: {kind}"


@pytest.mark.parametrize("alert", sorted(rules()))
def test_firing_case_fails_without_its_alert(alert: str, tmp_path: Path) -> None:
    written = yaml.safe_load(RULES.read_text())
    for group in written["groups"]:
        group["rules"] = [rule for rule in group["rules"] if rule.get("alert") != alert]
    without = tmp_path / "without.yaml"
    without.write_text(json.dumps(written))
    case = next(case for case in CASES if case.alert == alert and case.fires)

    assert "FAILED" in complaints(case, tmp_path, without)


@pytest.mark.parametrize(
    "arguments",
    [("check", "rules", RULES), ("check", "config", CONFIG / "prometheus" / "prometheus.yaml")],
    ids=["rules", "config"],
)
def test_promtool_has_nothing_against_the_files(arguments: tuple[str | Path, ...]) -> None:
    done = subprocess.run(
        [binary("promtool"), *arguments], capture_output=True, encoding="utf-8", check=False
    )

    assert (0, "") == (done.returncode, done.stderr)
