"""Jaeger as users deploy it."""

from __future__ import annotations

from pathlib import Path

from servers.building import built
from servers.process import Server, free_ports

CONFIG = Path(__file__).parents[2] / "collector-config" / "jaeger.yaml"
_VARIABLES = {"OTEL_TRACES_SAMPLER": "always_off"}  # for spans about itself, which go to port 4317


class Jaeger(Server):
    """Jaeger with the shipped configuration, on ports of its own.

    Args:
        folder: where it runs, and keeps its spans.
        in_memory: keep them in memory: the shipped storage takes no values of more than 65,000 bytes.
    """

    def __init__(self, folder: Path, *, in_memory: bool = False) -> None:
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
        if in_memory:
            settings["extensions.jaeger_storage.backends.memory.memory.max_traces"] = "100000"
            settings["extensions.jaeger_query.storage.traces"] = "memory"
            settings["exporters.jaeger_storage_exporter.trace_storage"] = "memory"
        arguments = [f"--set={name}={value}" for name, value in settings.items()]
        super().__init__([built("jaeger"), f"--config={CONFIG}", *arguments], folder, _VARIABLES)

    @property
    def otlp(self) -> str:
        """Where it takes OTLP over gRPC, as the exporters of the Collector name it."""
        return f"127.0.0.1:{self.otlp_port}"

    @property
    def api(self) -> str:
        """Where it answers questions."""
        return f"http://127.0.0.1:{self.query_port}"
