"""Runs the application that takes OTLP, until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import socket
from typing import TYPE_CHECKING, Any, Final

from otel_kernel.faults import UserError

if TYPE_CHECKING:
    from otel_kernel.receiving.app import ReceiverApp

_CONNECTIONS: Final = 64
"""More at once are told to come later."""
_GRACE_SECONDS: Final = 10


class ReceivingError(UserError):
    """The receiver cannot start; the message is one line: what is wrong and what to do."""


def listening(listen: str) -> socket.socket:
    """Return a socket that listens.

    Args:
        listen: `host:port`; port 0 stands for any that is free.

    Raises:
        ReceivingError: it cannot.
    """
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ReceivingError(f"--listen must be like 127.0.0.1:4318, got {listen!r}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, int(port)), family=family, backlog=128)
    except OSError as error:
        raise ReceivingError(f"cannot listen on {listen}: {error.strerror or error}") from None


class Receiving:
    """The server; `end` may be called from any thread."""

    def __init__(self, app: ReceiverApp, listener: socket.socket) -> None:
        """Take what serves and where.

        Raises:
            ReceivingError: a package is not installed.
        """
        try:
            import uvicorn
            from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
        except ImportError as error:
            raise ReceivingError(
                f"receiving needs {error.name}: pip install 'otel-kernel[receive]'"
            ) from error
        TracesData()  # the first request would find it missing otherwise
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            http="h11",
            ws="none",
            limit_concurrency=_CONNECTIONS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        self._server: Any = uvicorn.Server(config)
        self._listener = listener

    def run(self) -> None:
        """Serve until SIGINT, SIGTERM or `end`; requests that have come are answered first."""
        handlers = {number: signal.signal(number, _ignore) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            # The server raises a signal again when it is done, for those who wait for it outside.
            asyncio.run(self._server.serve(sockets=[self._listener]))
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def end(self) -> None:
        """Let `run` return."""
        self._server.should_exit = True


def _ignore(_number: int, _frame: object) -> None:
    """Do nothing: the server has ended as it was asked to."""
