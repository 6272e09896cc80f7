"""The production configuration at work: TLS and a token in front, Jaeger and stand-ins behind."""

from __future__ import annotations

import secrets
import subprocess
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from otlp.receiver import Receiver

from servers.collector import CONFIGURATIONS, Collector
from servers.jaeger import Jaeger
from servers.process import free_ports

PRODUCTION = CONFIGURATIONS / "otelcol.yaml"


@dataclass
class RemoteWrite:
    """Keeps what is written to it as to Prometheus; the real one is asked elsewhere."""

    url: str
    requests: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list[Any])


@dataclass(frozen=True)
class Stack:
    """What stands behind and around a Collector."""

    collector: Collector
    jaeger: Jaeger
    tempo: Receiver
    """Takes what Tempo would be sent."""
    prometheus: RemoteWrite
    certificate: Path
    token: str
    data: Path

    @property
    def client(self) -> dict[str, str]:
        """What a sender sets in its environment."""
        return {
            "OTEL_EXPORTER_OTLP_CERTIFICATE": str(self.certificate),
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{self.token}",
        }

    @property
    def https(self) -> str:
        """Where the Collector takes OTLP over HTTPS."""
        return f"https://127.0.0.1:{self.collector.http_port}"


def certificate(folder: Path) -> tuple[Path, Path]:
    """Return a certificate for loopback, signed by itself, and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    made = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command = ["openssl", "req", *made, *subject, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


@contextmanager
def remote_write() -> Generator[RemoteWrite]:
    """Start and end a `RemoteWrite`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.requests.append((dict(self.headers.items()), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base names it so
            """Say nothing: what went wrong is for the tests to see."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    taken = RemoteWrite(f"http://127.0.0.1:{server.server_port}/api/v1/write")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield taken
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def production(folder: Path) -> Generator[Stack]:
    """Start a Collector as the production configuration makes it, and what it sends to, and end all of it.

    ClickHouse is away: what is for it waits in its queue.
    """
    cert, key = certificate(folder)
    token, data = secrets.token_urlsafe(16), folder / "data"
    health_port, away = free_ports(2)
    (folder / "jaeger").mkdir()
    with Jaeger(folder / "jaeger") as jaeger, Receiver() as tempo, remote_write() as prometheus:
        variables = {
            "OTELCOL_LISTEN": "127.0.0.1",
            "OTELCOL_CERT": str(cert),
            "OTELCOL_KEY": str(key),
            "OTELCOL_TOKEN": token,
            "OTELCOL_DATA": str(data),
            "JAEGER_ENDPOINT": jaeger.otlp,
            "TEMPO_ENDPOINT": f"127.0.0.1:{tempo.grpc_port}",
            "CLICKHOUSE_ENDPOINT": f"tcp://127.0.0.1:{away}",
            "PROMETHEUS_ENDPOINT": prometheus.url,
        }
        changes = {"extensions": {"health_check": {"endpoint": f"127.0.0.1:{health_port}"}}}
        with Collector(PRODUCTION, folder, changes=changes, variables=variables) as collector:
            yield Stack(collector, jaeger, tempo, prometheus, cert, token, data)
