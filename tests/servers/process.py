"""A server as a process of the tests: started, waited for, and ended by its own id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final, TypeVar

READY: Final = "Everything is ready"
"""What a Collector, and Jaeger, which is one, logs when all of it has started."""

PATIENCE: Final = 60
"""Seconds for which a server may take to start or to end."""


def free_ports(number: int) -> list[int]:
    """Return ports of loopback that nobody listens on."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


_S = TypeVar("_S", bound="Server")


class Server:
    """A server that says in its log when it is ready; to be used as a context manager.

    Args:
        command: the program and its arguments.
        folder: where it runs, and where its log is.
        variables: for its environment, beside those of the tests.
    """

    ready: ClassVar[str] = READY
    """What it logs when it is."""

    def __init__(
        self, command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None
    ) -> None:
        self._command = [str(part) for part in command]
        self._environment = {**_without_ours(os.environ), **(variables or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = folder
        self.log_file = folder / f"{Path(self._command[0]).name}.log"

    @property
    def log(self) -> str:
        """What it has logged since it was started first."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def start(self) -> None:
        """Start it and wait until it is ready.

        Raises:
            RuntimeError: it ended, or was not ready in time; the message has the end of its log.
        """
        assert self._process is None, "it runs already"
        before = self.log.count(self.ready)
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self.folder, env=self._environment, stdout=log, stderr=log
            )
        deadline = time.monotonic() + PATIENCE
        while self.log.count(self.ready) == before:
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{' '.join(self._command)} is not ready:\n{self.log[-4000:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Ask it to end, as at a shutdown of its host, and wait until it has."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it without a warning."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def __enter__(self: _S) -> _S:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _without_ours(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what would configure a server that is a part of OpenTelemetry too."""
    return {name: value for name, value in environment.items() if not name.startswith("OTEL_")}
