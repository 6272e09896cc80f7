"""Prometheus and Alertmanager with the configurations that users deploy."""

from __future__ import annotations

import json
import shutil
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, ClassVar, Final

import yaml

from servers import debian
from servers.collector import CONFIGURATIONS
from servers.process import Server, free_ports

RULES: Final = CONFIGURATIONS / "prometheus" / "otel-kernel.rules.yaml"

_QUICKER: Final = (
    ("interval: 1m", "interval: 10s"),
    ("offset 1m", "offset 10s"),
    ("offset 2m", "offset 20s"),
)
"""What of the rules is a minute, so that a test need not wait for minutes."""


class Alertmanager(Server):
    """Alertmanager with the shipped configuration, on a port of its own."""

    ready: ClassVar[str] = "Listening on"

    def __init__(self, folder: Path) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        arguments = [
            f"--config.file={CONFIGURATIONS / 'alertmanager' / 'alertmanager.yaml'}",
            f"--storage.path={folder / 'alertmanager'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ]
        super().__init__([debian.alertmanager(), *arguments], folder)

    def alerts(self) -> dict[str, dict[str, Any]]:
        """Return the alerts by their names, as its API tells them."""
        return {alert["labels"]["alertname"]: alert for alert in _got(f"{self.url}/api/v2/alerts")}


class Prometheus(Server):
    """Prometheus with the shipped configuration and rules, on a port of its own, its minute 10 seconds long."""

    ready: ClassVar[str] = "Server is ready to receive web requests"

    def __init__(self, folder: Path, alertmanager: Alertmanager) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        shipped = CONFIGURATIONS / "prometheus" / "prometheus.yaml"
        config = yaml.safe_load(shipped.read_text())
        config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [alertmanager.url[7:]]
        (folder / shipped.name).write_text(json.dumps(config))
        rules = RULES.read_text()
        for minute, quicker in _QUICKER:
            assert minute in rules, minute
            rules = rules.replace(minute, quicker)
        (folder / RULES.name).write_text(rules)
        arguments = [
            f"--config.file={folder / shipped.name}",
            f"--storage.tsdb.path={folder / 'prometheus'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--web.enable-remote-write-receiver",
        ]
        super().__init__([debian.binary("prometheus"), *arguments], folder)
        shutil.rmtree(folder / "prometheus", ignore_errors=True)

    @property
    def remote_write(self) -> str:
        """Where the Collector writes to."""
        return f"{self.url}/api/v1/write"

    def ask(self, query: str) -> list[dict[str, Any]]:
        """Return the samples that answer a query at this moment."""
        answer = _got(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': query})}")
        assert "success" == answer["status"], answer
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found


def _got(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)
