"""Jaeger as users deploy it."""

from __future__ import annotations

from pathlib import Path

from servers.building import built
from servers.process import Server, free_ports

CONFIG = Path(__file__).parents[2] / "collector-config" / "jaeger.yaml"


class Jaeger(Server):
    """Jaeger with the shipped configuration, on ports of its own, with its storage below `folder`."""

    def __init__(self, folder: Path, config: Path = CONFIG) -> None:
        self.otlp_port, self.query_port, self.query_grpc_port, metrics_port, health_port = free_ports(5)
        reader = f"pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {metrics_port}}}}}}}"
        settings = {
            "receivers.otlp.protocols.grpc.endpoint": f"127.0.0.1:{self.otlp_port}",
            "extensions.jaeger_query.http.endpoint": f"127.0.0.1:{self.query_port}",
            "extensions.jaeger_query.grpc.endpoint": f"127.0.0.1:{self.query_grpc_port}",
            "extensions.healthcheckv2.http.endpoint": f"127.0.0.1:{health_port}",
            "extensions.jaeger_storage.backends.trips.badger.directories.keys": str(folder / "keys"),
            "extensions.jaeger_storage.backends.trips.badger.directories.values": str(folder / "values"),
            "service.telemetry.metrics.readers": f"[{{{reader}}}]",
        }
        arguments = [f"--set={name}={value}" for name, value in settings.items()]
        super().__init__([built("jaeger"), f"--config={config}", *arguments], folder)

    @property
    def otlp(self) -> str:
        """Where it takes OTLP over gRPC, as the exporters of the Collector name it."""
        return f"127.0.0.1:{self.otlp_port}"

    @property
    def api(self) -> str:
        """Where it answers questions."""
        return f"http://127.0.0.1:{self.query_port}"
