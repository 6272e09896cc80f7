"""Exports nothing to an OTLP endpoint, to see whether it would take something."""

from __future__ import annotations

import http.client
import socket
import ssl
from pathlib import Path
from typing import Final

from otel_kernel.doctor.endpoints import GRPC, Endpoint

_PATIENCE: Final = 3.0
"""Seconds that an endpoint may take to answer."""

_METHOD: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

_NOTHING: Final = b""
"""An export request without spans."""


class NoAnswerError(Exception):
    """The endpoint would take nothing; the message is one line."""


class UnreachableError(NoAnswerError):
    """Nothing listens there, or the way is blocked."""


class NotTriedError(Exception):
    """The endpoint can be reached, and what speaks its protocol is not installed."""


def export_nothing(endpoint: Endpoint) -> None:
    """Send an export request without spans.

    Raises:
        NoAnswerError: it is not answered, or refused.
        NotTriedError: it cannot be sent from here.
    """
    try:
        socket.create_connection((endpoint.host, endpoint.port), _PATIENCE).close()
    except OSError as error:
        raise UnreachableError(f"cannot be reached: {error.strerror or error}") from None
    if endpoint.protocol == GRPC:
        _by_grpc(endpoint)
    else:
        _by_http(endpoint)


def _by_http(endpoint: Endpoint) -> None:
    connection: http.client.HTTPConnection
    if endpoint.is_secure:
        trusted = _trusted(endpoint)
        context = ssl.create_default_context(cadata=None if trusted is None else trusted.decode("ascii"))
        connection = http.client.HTTPSConnection(
            endpoint.host, endpoint.port, timeout=_PATIENCE, context=context
        )
    else:
        connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=_PATIENCE)
    try:
        headers = {**endpoint.headers, "Content-Type": "application/x-protobuf"}
        connection.request("POST", endpoint.path, _NOTHING, headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswerError(f"does not answer over HTTP: {error or type(error).__name__}") from None
    finally:
        connection.close()
    if status != http.HTTPStatus.OK:
        raise NoAnswerError(f"answers {status} {http.client.responses.get(status, '')}".rstrip())


def _by_grpc(endpoint: Endpoint) -> None:
    try:
        import grpc
    except ImportError:
        raise NotTriedError("can be reached; without grpcio no export was tried") from None
    target = f"{endpoint.host}:{endpoint.port}"
    if endpoint.is_secure:
        channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(_trusted(endpoint)))
    else:
        channel = grpc.insecure_channel(target)
    with channel:
        export: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_METHOD)
        try:
            export(_NOTHING, timeout=_PATIENCE, metadata=tuple(endpoint.headers.items()))
        except grpc.RpcError as error:
            code, details = error.code(), error.details()
            raise NoAnswerError(f"answers {code.name}: {details}") from None


def _trusted(endpoint: Endpoint) -> bytes | None:
    """Return the certificates to trust, or None for those of the system."""
    if endpoint.certificate is None:
        return None
    try:
        return Path(endpoint.certificate).read_bytes()
    except OSError as error:
        raise NoAnswerError(f"{endpoint.certificate} cannot be read: {error.strerror}") from None
