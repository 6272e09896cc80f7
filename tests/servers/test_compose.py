"""The compose file, which is not run here: what it mounts is there and valid, what it pulls is pinned."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from servers.building import built
from servers.collector import CONFIGURATIONS

COMPOSE: dict[str, Any] = yaml.safe_load((CONFIGURATIONS / "compose.yaml").read_text())
CHECKED = {
    "alertmanager": "tests/alerts, by amtool",
    "clickhouse.sql": "tests/clickhouse, by chdb",
    "clickhouse/view.sql": "tests/clickhouse, by chdb",
    "jaeger.yaml": "below, by Jaeger",
    "otelcol.yaml": "tests/servers/test_production.py, by the Collector",
    "prometheus": "tests/alerts, by promtool",
}
"""What is mounted, and where its own tool checks it."""

NOT_CHECKED = {"tempo.yaml", "tls"}
"""Tempo is not installed here, and the certificate is the user's."""


def mounted() -> set[str]:
    """Return the files and folders beside the compose file that it mounts."""
    volumes = [volume for service in COMPOSE["services"].values() for volume in service.get("volumes", ())]
    return {volume.split(":")[0].removeprefix("./") for volume in volumes if volume.startswith("./")}


def test_every_image_is_pinned_to_a_release() -> None:
    for name, service in COMPOSE["services"].items():
        assert re.fullmatch(r"[a-z/-]+:v?\d+\.\d+\.\d+(\.\d+)?", service["image"]), name


def test_everything_that_is_mounted_is_there_and_checked_by_its_own_tool() -> None:
    assert mounted() == CHECKED.keys() | NOT_CHECKED
    for name in mounted() - {"tls"}:
        assert (CONFIGURATIONS / name).exists(), name


def test_every_volume_is_declared_and_used() -> None:
    volumes = [volume for service in COMPOSE["services"].values() for volume in service.get("volumes", ())]

    assert {volume.split(":")[0] for volume in volumes if not volume.startswith("./")} == COMPOSE[
        "volumes"
    ].keys()


def test_every_variable_that_the_configurations_require_is_set() -> None:
    for name, service in (("otelcol.yaml", "otelcol"), ("jaeger.yaml", "jaeger")):
        text = re.sub(r"#.*", "", (CONFIGURATIONS / name).read_text())
        required = set(re.findall(r"\$\{env:(\w+)\}", text))

        assert required <= COMPOSE["services"][service]["environment"].keys(), name


def test_only_the_collector_listens_for_other_hosts() -> None:
    for name, service in COMPOSE["services"].items():
        for port in service.get("ports", ()):
            assert name == "otelcol" or port.startswith("127.0.0.1:"), name


@pytest.mark.usefixtures("servers")
def test_jaeger_takes_its_configuration(tmp_path: Path) -> None:
    config = CONFIGURATIONS / "jaeger.yaml"
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(config.read_text().replace("trace_storage: trips", "trace_store: trips"))
    right, refused = (
        subprocess.run([built("jaeger"), "validate", f"--config={each}"], capture_output=True, check=False)
        for each in (config, wrong)
    )

    assert 0 == right.returncode, right.stderr
    assert 0 != refused.returncode
    assert b"trace_store" in refused.stderr
