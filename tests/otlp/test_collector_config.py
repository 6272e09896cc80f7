"""The Collector's configuration as far as it can be checked without a Collector."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from otel_kernel import semconv

FOLDER = Path(__file__).parents[2] / "collector-config"
MINIMAL = FOLDER / "otelcol-minimal.yaml"


@pytest.fixture
def config() -> dict[str, Any]:
    """The minimal configuration."""
    loaded: dict[str, Any] = yaml.safe_load(MINIMAL.read_text())
    return loaded


def test_every_component_is_defined_and_used(config: dict[str, Any]) -> None:
    for kind in ("receivers", "processors", "exporters"):
        used = {name for pipeline in config["service"]["pipelines"].values() for name in pipeline[kind]}

        assert used == set(config[kind]), kind


def test_the_memory_limiter_comes_first(config: dict[str, Any]) -> None:
    for pipeline in config["service"]["pipelines"].values():
        assert "memory_limiter" == pipeline["processors"][0]


def test_it_listens_on_loopback_only(config: dict[str, Any]) -> None:
    protocols = config["receivers"]["otlp"]["protocols"]

    assert {"grpc": "127.0.0.1:4317", "http": "127.0.0.1:4318"} == {
        name: protocol["endpoint"] for name, protocol in protocols.items()
    }


def test_a_restart_leaves_the_file_and_its_lines_are_json(config: dict[str, Any]) -> None:
    file = config["exporters"]["file/trips"]

    assert file["append"] is True
    assert "json" == file["format"]
    assert not {"compression", "rotation", "encoding"} & file.keys()


def test_the_filter_names_an_attribute_that_every_span_of_ours_has(config: dict[str, Any]) -> None:
    (condition,) = config["processors"]["filter/trips"]["trace_conditions"]
    (name,) = re.findall(r'attributes\["([^"]+)"\]', condition)

    assert semconv.ROLE == name
    assert "always" == semconv.ATTRIBUTES[name].when


def test_every_name_of_ours_in_a_configuration_is_defined() -> None:
    for path in sorted(FOLDER.glob("*.yaml")):
        for name in re.findall(r"compute\.kernel\.[a-z0-9_.]*[a-z0-9_]", path.read_text()):
            assert semconv.definition(name) or name in semconv.METRICS, f"{path.name}: {name}"
