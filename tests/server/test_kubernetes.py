"""What is there for Kubernetes is valid, and its parts fit each other."""

# kubernetes_validate has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped] # it has no types
import pytest
import yaml

from otel_kernel import environment_variables

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "collector-config" / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))
KUBERNETES = "1.34"


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()))


def of_kind(name: str, kind: str) -> Any:
    (found,) = [each for each in documents(name) if each["kind"] == kind]
    return found


def container(resource: Any) -> Any:
    (found,) = resource["spec"]["template"]["spec"]["containers"]
    return found


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_every_resource_is_as_kubernetes_says(path: Path) -> None:
    for document in yaml.safe_load_all(path.read_text()):
        kubernetes_validate.validate(document, KUBERNETES, strict=True)


@pytest.mark.parametrize(("name", "kind"), [("model-server", "Deployment"), ("collector-agent", "DaemonSet")])
def test_every_mount_has_its_volume_and_every_volume_is_mounted(name: str, kind: str) -> None:
    resource = of_kind(name, kind)
    volumes = {volume["name"] for volume in resource["spec"]["template"]["spec"]["volumes"]}

    assert volumes == {mount["name"] for mount in container(resource)["volumeMounts"]}


def test_volumes_are_those_of_the_files() -> None:
    server, agent = of_kind("model-server", "Deployment"), of_kind("collector-agent", "DaemonSet")
    store, *_ = server["spec"]["template"]["spec"]["volumes"]
    (config,) = agent["spec"]["template"]["spec"]["volumes"]

    assert (
        of_kind("model-server", "PersistentVolumeClaim")["metadata"]["name"]
        == store["persistentVolumeClaim"]["claimName"]
    )
    assert of_kind("collector-agent", "ConfigMap")["metadata"]["name"] == config["configMap"]["name"]


@pytest.mark.parametrize(("name", "kind"), [("model-server", "Deployment"), ("collector-agent", "DaemonSet")])
def test_a_variable_refers_to_one_above_it(name: str, kind: str) -> None:
    known: set[str] = set()
    for variable in container(of_kind(name, kind))["env"]:
        assert set(re.findall(r"\$\((\w+)\)", variable.get("value", ""))) <= known
        known.add(variable["name"])


def test_paths_in_variables_are_on_the_volumes_meant_for_them() -> None:
    server = container(of_kind("model-server", "Deployment"))
    paths = {mount["name"]: mount["mountPath"] for mount in server["volumeMounts"]}
    values = {variable["name"]: variable.get("value", "") for variable in server["env"]}

    assert values["OTEL_KERNEL_RECORDING"].startswith(f"{paths['recording']}/")
    stores = [name for name in values if name.endswith("CACHE_DIR")]
    assert 4 == len(stores)
    assert all(values[name].startswith(f"{paths['store']}/") for name in stores)
    assert len(stores) == len({values[name] for name in stores})


def test_our_variables_are_there() -> None:
    names = {variable["name"] for variable in container(of_kind("model-server", "Deployment"))["env"]}

    assert {name for name in names if name.startswith("OTEL_KERNEL_")} <= set(vars(environment_variables))


def test_resource_attributes_can_be_read() -> None:
    values = {
        each["name"]: each.get("value") for each in container(of_kind("model-server", "Deployment"))["env"]
    }
    pairs = [pair.split("=") for pair in str(values["OTEL_RESOURCE_ATTRIBUTES"]).split(",")]

    assert {2} == {len(pair) for pair in pairs}
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    assert [] == [name for name, _ in pairs if f"`{name}`" not in page and name != "k8s.namespace.name"]


def test_the_server_sends_to_a_port_of_the_agent() -> None:
    server = {
        each["name"]: each.get("value", "")
        for each in container(of_kind("model-server", "Deployment"))["env"]
    }
    ports = {port["hostPort"] for port in container(of_kind("collector-agent", "DaemonSet"))["ports"]}

    port = int(server["OTEL_EXPORTER_OTLP_ENDPOINT"].rpartition(":")[2])
    assert port in ports
    assert {4317, 4318} == ports


def test_the_agent_s_configuration_is_whole() -> None:
    config = yaml.safe_load(of_kind("collector-agent", "ConfigMap")["data"]["agent.yaml"])
    pipelines = config["service"]["pipelines"]
    env = {each["name"] for each in container(of_kind("collector-agent", "DaemonSet"))["env"]}

    assert {"traces", "metrics", "logs"} == pipelines.keys()
    for part in ("receivers", "processors", "exporters"):
        assert config[part].keys() == {name for pipeline in pipelines.values() for name in pipeline[part]}
    assert config["extensions"].keys() == set(config["service"]["extensions"])
    assert {"memory_limiter"} == {pipeline["processors"][0] for pipeline in pipelines.values()}
    assert (
        set(re.findall(r"\$\{env:(\w+)\}", of_kind("collector-agent", "ConfigMap")["data"]["agent.yaml"]))
        <= env
    )
    assert config["processors"]["k8s_attributes"]["filter"]["node_from_env_var"] in env
