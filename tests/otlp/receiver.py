"""An OTLP endpoint on loopback that keeps whole requests."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Literal, TypeAlias

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otel_kernel.semconv import SCOPE_PREFIX

Request: TypeAlias = "ExportTraceServiceRequest | ExportMetricsServiceRequest | ExportLogsServiceRequest"
Protocol: TypeAlias = Literal["grpc", "http/protobuf"]

FOUR_MEBIBYTES: Final = 4 * 1024 * 1024
"""What a gRPC server takes in one message unless it is told otherwise."""

_SIGNALS: Final[dict[str, type[Request]]] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": ExportTraceServiceRequest,
    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": ExportMetricsServiceRequest,
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": ExportLogsServiceRequest,
}
_ANSWERS: Final = {
    ExportTraceServiceRequest: ExportTraceServiceResponse().SerializeToString(),
    ExportMetricsServiceRequest: ExportMetricsServiceResponse().SerializeToString(),
    ExportLogsServiceRequest: ExportLogsServiceResponse().SerializeToString(),
}


@dataclass(frozen=True)
class Arrived:
    """A span as it arrived, with the scope it came under."""

    scope: InstrumentationScope
    span: Span


@dataclass
class Receiver:
    """Takes traces, metrics and logs over gRPC and over HTTP; to be used as a context manager.

    Args:
        max_bytes: a larger request is refused for good, with the code that a Collector answers.
        refusals: how many requests to answer with "unavailable" first, which exporters try again.
    """

    max_bytes: int = FOUR_MEBIBYTES
    refusals: int = 0
    requests: list[Request] = field(default_factory=list[Request])
    """What was taken, in the order it came."""
    refused: int = 0
    """Number of requests that were not taken; over gRPC one that is too large is not seen at all."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._grpc = grpc.server(
            ThreadPoolExecutor(2), options=[("grpc.max_receive_message_length", self.max_bytes)]
        )
        self._grpc.add_generic_rpc_handlers((_GrpcHandler(self),))
        self.grpc_port = self._grpc.add_insecure_port("127.0.0.1:0")
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _http_handler(self))
        self.http_port = self._http.server_port

    def __enter__(self) -> Receiver:
        self._grpc.start()
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        self._grpc.stop(None).wait()

    def endpoint(self, protocol: Protocol) -> str:
        """Return the URL under which otel-kernel finds `grpc` or `http/protobuf` here."""
        if protocol == "grpc":
            return f"grpc://127.0.0.1:{self.grpc_port}"
        return f"http://127.0.0.1:{self.http_port}"

    def take(self, request: Request) -> bool:
        """Keep a request and return true, or return false if it is to be refused for now."""
        with self._lock:
            if self.refusals > 0:
                self.refusals -= 1
                self.refused += 1
                return False
            self.requests.append(request)
            return True

    @property
    def trace_requests(self) -> list[ExportTraceServiceRequest]:
        """What was taken of traces, in the order it came."""
        return [request for request in self.requests if isinstance(request, ExportTraceServiceRequest)]

    @property
    def spans(self) -> list[Arrived]:
        """All spans that arrived, in order."""
        return list(self._spans())

    def _spans(self) -> Iterator[Arrived]:
        for request in self.trace_requests:
            for resource_spans in request.resource_spans:
                for scope_spans in resource_spans.scope_spans:
                    for span in scope_spans.spans:
                        yield Arrived(scope_spans.scope, span)

    @property
    def trips(self) -> list[Arrived]:
        """The spans of otel-kernel."""
        return [arrived for arrived in self.spans if arrived.scope.name.startswith(SCOPE_PREFIX)]

    @property
    def metrics(self) -> list[tuple[InstrumentationScope, Metric]]:
        """All metrics that arrived, in order, each with its scope."""
        return [
            (scope_metrics.scope, metric)
            for request in self.requests
            if isinstance(request, ExportMetricsServiceRequest)
            for resource_metrics in request.resource_metrics
            for scope_metrics in resource_metrics.scope_metrics
            for metric in scope_metrics.metrics
        ]

    @property
    def logs(self) -> list[tuple[InstrumentationScope, LogRecord]]:
        """All log records that arrived, in order, each with its scope."""
        return [
            (scope_logs.scope, record)
            for request in self.requests
            if isinstance(request, ExportLogsServiceRequest)
            for resource_logs in request.resource_logs
            for scope_logs in resource_logs.scope_logs
            for record in scope_logs.log_records
        ]


class _GrpcHandler(grpc.GenericRpcHandler):
    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        kind = _SIGNALS.get(handler_call_details.method)
        if kind is None:
            return None

        def export(data: bytes, context: grpc.ServicerContext) -> bytes:
            if not self._receiver.take(kind.FromString(data)):
                context.abort(grpc.StatusCode.UNAVAILABLE, "later, please")
            return _ANSWERS[kind]

        return grpc.unary_unary_rpc_method_handler(export)


def _http_handler(receiver: Receiver) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                data = gzip.decompress(data)
            kind = _SIGNALS.get(self.path)
            if kind is None:
                self._answer(404, b"")
            elif len(data) > receiver.max_bytes:
                receiver.refused += 1
                self._answer(413, b"")
            elif receiver.take(kind.FromString(data)):
                self._answer(200, _ANSWERS[kind])
            else:
                self._answer(503, b"")

        def _answer(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base names it so
            """Say nothing: what went wrong is for the tests to see."""

    return Handler
