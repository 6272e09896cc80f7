"""The engine, in a process of its own, and its workers, which it starts by fork or spawn."""

from __future__ import annotations

import multiprocessing
import os
import signal
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

import server_kernels
import telemetry_setup

import otel_kernel

WORLD_SIZE = 2


@dataclass(frozen=True)
class Compile:
    """Asks a worker to compile a kernel."""

    runtime: str
    kernel: str
    context: dict[str, str] | None


@dataclass(frozen=True)
class Leave:
    """Asks a worker to leave, in some way."""

    how: str


Message: TypeAlias = "Compile | Leave"


def work(connection: Connection[Any, Any], method: str, rank: int) -> None:
    """Serve as a worker of that rank until told to leave."""
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(WORLD_SIZE))
    if method == "spawn":  # a forked one has what the engine has
        telemetry_setup.set_up("worker")
    while True:
        message: Message = connection.recv()
        if isinstance(message, Leave):
            _leave(message.how)
            return
        with otel_kernel.incoming_context(message.context):
            server_kernels.COMPILE[message.runtime](message.kernel)
        connection.send(os.getpid())


def _leave(how: str) -> None:
    match how:
        case "return":
            telemetry_setup.flush()
        case "os._exit":
            os._exit(0)
        case _:
            os.kill(os.getpid(), signal.Signals[how])
            signal.pause()


class _Worker:
    def __init__(self, method: str, rank: int) -> None:
        context: Any = multiprocessing.get_context(method)
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, method, rank))
        self._process.start()
        theirs.close()

    def ask(self, message: Message) -> int:
        """Return the pid, once it is done."""
        self._connection.send(message)
        if isinstance(message, Leave):
            self._process.join()
        else:
            self._connection.recv()
        pid: int = self._process.pid
        return pid


def serve(connection: Connection[Any, Any]) -> None:
    """Start workers by their names, such as `fork-0`, and pass on what is asked of them, until there is no more."""
    telemetry_setup.set_up("engine")
    workers: dict[str, _Worker] = {}
    while True:
        asked: tuple[str, Message] | None = connection.recv()
        if asked is None:
            return
        name, message = asked
        if name not in workers:
            method, _, number = name.partition("-")
            workers[name] = _Worker(method, int(number) % WORLD_SIZE)
        connection.send(workers[name].ask(message))
