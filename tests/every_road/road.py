"""One Collector that sends everything down every road: a file, Jaeger, and `otel-kernel receive`."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.rows import chdb_session, insert, make_tables, rows_of
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from receiving.command import Receiving, receiving
from servers.collector import CONFIGURATIONS, Collector
from servers.jaeger import Jaeger
from servers.process import free_ports
from servers.waiting import eventually

from otel_kernel.inputs import Problem, open_input
from otel_kernel.inputs.otlp_json import is_list, is_object
from otel_kernel.records import Trip


@dataclass
class Roads:
    """What is at work, and what has come out at each end."""

    folder: Path
    collector: Collector
    jaeger: Jaeger
    receiving: Receiving

    def file(self) -> list[Trip]:
        """Return the trips in the Collector's file."""
        return trips_of(open_input(f"{self.folder}/kernel-trips*.jsonl"))

    def at_jaeger(self) -> list[Trip]:
        """Return the trips that Jaeger gives back."""
        return trips_of(open_input(f"jaeger+{self.jaeger.api}?since=24h&limit=2000"))

    def recording(self) -> list[Trip]:
        """Return the trips that were received."""
        return trips_of(open_input(self.receiving.recording))

    def at_clickhouse(self) -> list[Trip]:
        """Return the trips of the Collector's file, after they were rows of the exporter's table in ClickHouse."""
        folder = self.folder / "chdb"
        with chdb_session(folder) as session:
            make_tables(session)
            for path in sorted(self.folder.glob("kernel-trips*.jsonl")):
                for line in path.read_text(encoding="utf-8").split("\n"):
                    if line:
                        insert(session, "otel.otel_traces", rows_of(request_of(json.loads(line))))
        return trips_of(open_input(f"chdb://{folder}"))

    def ends(self) -> dict[str, Callable[[], list[Trip]]]:
        """Return what gives the trips at each end."""
        return {
            "file": self.file,
            "Jaeger": self.at_jaeger,
            "receive": self.recording,
            "ClickHouse": self.at_clickhouse,
        }

    def wait_for(self, number: int) -> None:
        """Wait until so many trips have come to where they come late."""
        eventually(lambda: number <= len(self.recording()))
        eventually(lambda: number <= len(self.at_jaeger()), pause=1.0)


def trips_of(found: Iterable[Trip | Problem]) -> list[Trip]:
    """Return the trips in the order in which they were, and fail for a problem."""
    trips = list(found)
    assert [str(each) for each in trips if isinstance(each, Problem)] == []
    return sorted(
        (each for each in trips if isinstance(each, Trip)), key=lambda trip: (trip.session.id, trip.seq)
    )


def request_of(value: Any) -> ExportTraceServiceRequest:
    """Return a request that the Collector has written in JSON."""

    def in_base64(each: Any) -> Any:
        if is_list(each):
            return [in_base64(item) for item in each]
        if not is_object(each):
            return each
        made = {name: in_base64(item) for name, item in each.items()}
        for name in ("traceId", "spanId", "parentSpanId"):
            if made.get(name):
                made[name] = base64.b64encode(bytes.fromhex(made[name])).decode()
        return made

    return ParseDict(in_base64(value), ExportTraceServiceRequest(), ignore_unknown_fields=True)


def configuration(folder: Path, jaeger: Jaeger, receiver: str) -> dict[str, Any]:
    """Return what the minimal configuration needs to go down the other roads too."""
    retry = {"enabled": True, "initial_interval": "100ms", "max_interval": "500ms", "max_elapsed_time": 0}
    queue = {
        "storage": "file_storage/queues",
        "sizer": "bytes",
        "queue_size": 1_000_000_000,
        "batch": {"flush_timeout": "200ms", "min_size": 100_000, "max_size": 30_000_000},
    }
    return {
        "extensions": {
            "file_storage/queues": {"directory": str(folder / "queues"), "create_directory": True}
        },
        "exporters": {
            "file/trips": {"append": False, "rotation": {"max_megabytes": 20}},
            "otlp_grpc/jaeger": {
                "endpoint": jaeger.otlp,
                "tls": {"insecure": True},
                "retry_on_failure": retry,
                "sending_queue": queue,
            },
            "otlp_http/receive": {"endpoint": receiver, "retry_on_failure": retry, "sending_queue": queue},
        },
        "service": {
            "extensions": ["file_storage/queues"],
            "pipelines": {
                "traces/trips": {"exporters": ["file/trips", "otlp_grpc/jaeger", "otlp_http/receive"]}
            },
        },
    }


@contextmanager
def roads(folder: Path) -> Generator[Roads]:
    """Start all of it, and end it."""
    (folder / "jaeger").mkdir()
    (port,) = free_ports(1)
    with ExitStack() as stack:
        jaeger = stack.enter_context(Jaeger(folder / "jaeger", in_memory=True))
        receiver = stack.enter_context(receiving(folder / "received.db", port=port))
        changes = configuration(folder, jaeger, receiver.url)
        config = CONFIGURATIONS / "otelcol-minimal.yaml"
        collector = stack.enter_context(Collector(config, folder, changes=changes))
        yield Roads(folder, collector, jaeger, receiver)
