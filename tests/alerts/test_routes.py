"""Where Alertmanager sends the alerts, by its own tool."""

from __future__ import annotations

import subprocess
from typing import Final

import pytest
from servers.debian import binary

from alerts.promtool import CONFIG, rules

ALERTMANAGER: Final = CONFIG / "alertmanager" / "alertmanager.yaml"

RECEIVERS: Final = {"critical": "page", "warning": "chat", "info": "tickets"}
"""The receiver of each severity."""


def _amtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([binary("amtool"), *arguments], capture_output=True, encoding="utf-8", check=False)


def _receiver(**labels: str) -> str:
    """Return the receivers of an alert with these labels, as amtool tells them."""
    alert = [f"{name}={value}" for name, value in labels.items()]
    done = _amtool("config", "routes", "test", f"--config.file={ALERTMANAGER}", *alert)

    assert 0 == done.returncode, done.stderr
    return done.stdout.strip()


def test_amtool_has_nothing_against_the_configuration() -> None:
    done = _amtool("check-config", str(ALERTMANAGER))

    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize("alert", sorted(rules()))
def test_alert_goes_where_its_severity_says(alert: str) -> None:
    severity = rules()[alert]["labels"]["severity"]

    assert RECEIVERS[severity] == _receiver(alertname=alert, severity=severity, job="shop/prices")


@pytest.mark.parametrize("severity", RECEIVERS)
def test_alerts_of_others_go_to_the_default_receiver(severity: str) -> None:
    assert "chat" == _receiver(alertname="DiskFull", severity=severity)
