"""The Collector with the configurations that users deploy."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from servers.building import built
from servers.process import Server, free_ports

CONFIGURATIONS: Final = Path(__file__).parents[2] / "collector-config"


class Collector(Server):
    """A Collector with the shipped configuration, on ports of its own.

    Args:
        config: the configuration.
        folder: where it runs; relative paths of the configuration are below it.
        changes: merged over the configuration as YAML is: lists are replaced.
        variables: for its environment.
        arguments: beside the configuration.
    """

    def __init__(
        self,
        config: Path,
        folder: Path,
        *,
        changes: Mapping[str, Any] | None = None,
        variables: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self.grpc_port, self.http_port, self.metrics_port = free_ports(3)
        reader = {"pull": {"exporter": {"prometheus": {"host": "127.0.0.1", "port": self.metrics_port}}}}
        protocols = {
            "grpc": {"endpoint": f"127.0.0.1:{self.grpc_port}"},
            "http": {"endpoint": f"127.0.0.1:{self.http_port}"},
        }
        ports = {
            "receivers": {"otlp": {"protocols": protocols}},
            "service": {"telemetry": {"metrics": {"readers": [reader]}}},
        }
        configs = [config]
        for name, content in (("ports", ports), ("changes", changes)):
            if content is not None:
                path = folder / f"{name}.yaml"
                path.write_text(json.dumps(content))  # which is YAML too
                configs.append(path)
        files = [f"--config={each}" for each in configs]
        super().__init__([built("collector"), *files, *arguments], folder, variables)

    def complaints(self) -> list[str]:
        """Return the lines of its log that are warnings or errors, or speak of what is deprecated."""
        signs = ("\twarn\t", "\terror\t", "\tfatal\t", "deprecat")
        return [line for line in self.log.splitlines() if any(sign in line for sign in signs)]

    @property
    def grpc(self) -> str:
        """Where it takes OTLP over gRPC, as otel-kernel names it."""
        return f"grpc://127.0.0.1:{self.grpc_port}"

    @property
    def http(self) -> str:
        """Where it takes OTLP over HTTP."""
        return f"http://127.0.0.1:{self.http_port}"


def validate(config: Path, variables: Mapping[str, str] | None = None) -> str:
    """Return what the Collector says against a configuration; nothing if it is valid."""
    command: list[str | Path] = [built("collector"), "validate", f"--config={config}"]
    done = subprocess.run(command, capture_output=True, env=dict(variables or {}), check=False)
    said = (done.stdout + done.stderr).decode()
    return said if done.returncode or said.strip() else ""
