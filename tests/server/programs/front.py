"""A model server: an HTTP front, an engine in a process of its own, and its workers.

It writes its port to the file `port` once it listens. WAY says how it is started; what it sets up itself depends
on that, see `telemetry_setup`.
"""

from __future__ import annotations

import asyncio
import contextvars
import multiprocessing
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import engine
import fastapi
import server_kernels
import telemetry_setup
import uvicorn
from opentelemetry import trace

import otel_kernel


class _Engine:
    def __init__(self) -> None:
        context: Any = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=engine.serve, args=(theirs,))
        self._process.start()
        self._lock = threading.Lock()

    def ask(self, worker: str, message: engine.Message) -> int:
        with self._lock:
            self._connection.send((worker, message))
            answer: int = self._connection.recv()
            return answer

    def stop(self) -> None:
        self._connection.send(None)
        self._process.join()


def _answer(pid: int) -> dict[str, Any]:
    span = trace.get_current_span().get_span_context()
    return {"trace": f"{span.trace_id:032x}", "span": f"{span.span_id:016x}", "pid": pid}


async def _compile_here(how: str, kernel: str) -> None:
    match how:
        case "task":
            server_kernels.numba(kernel)
        case "to_thread":
            await asyncio.to_thread(server_kernels.numba, kernel)
        case "executor":
            context = contextvars.copy_context()
            with ThreadPoolExecutor(1) as pool:
                await asyncio.get_running_loop().run_in_executor(
                    pool, lambda: context.run(server_kernels.numba, kernel)
                )
        case "contextvars":
            await _joined(
                threading.Thread(target=contextvars.copy_context().run, args=(server_kernels.numba, kernel))
            )
        case _:
            await _joined(threading.Thread(target=server_kernels.numba, args=(kernel,)))


async def _joined(thread: threading.Thread) -> None:
    thread.start()
    await asyncio.to_thread(thread.join)


def _app(workers: _Engine, stop: asyncio.Event) -> fastapi.FastAPI:
    app = fastapi.FastAPI()

    @app.get("/here/{how}/{kernel}")
    async def here(how: str, kernel: str) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction] - a route
        await _compile_here(how, kernel)
        return _answer(os.getpid())

    @app.get("/unsampled/{kernel}")
    async def unsampled(kernel: str) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction] - a route
        server_kernels.numba(kernel)
        return _answer(os.getpid())

    @app.get("/worker/{worker}/{runtime}/{kernel}")
    async def worker(  # pyright: ignore[reportUnusedFunction] - a route
        worker: str, runtime: str, kernel: str, context: bool = True
    ) -> dict[str, Any]:
        carried = otel_kernel.outgoing_context() if context else None
        message = engine.Compile(runtime, kernel, carried)
        return _answer(await asyncio.to_thread(workers.ask, worker, message))

    @app.get("/leave/{worker}/{how}")
    async def leave(worker: str, how: str) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction] - a route
        return _answer(await asyncio.to_thread(workers.ask, worker, engine.Leave(how)))

    @app.get("/stop")
    async def stop_all() -> None:  # pyright: ignore[reportUnusedFunction] - a route
        await asyncio.to_thread(workers.stop)
        stop.set()

    return app


async def _serve() -> None:
    workers, stop = _Engine(), asyncio.Event()
    app = _app(workers, stop)
    if os.environ["WAY"] != "opentelemetry-instrument":
        from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor

        FastAPIInstrumentor.instrument_app(app)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    listening = socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    port = Path("port.new")
    port.write_text(str(listening.getsockname()[1]))
    port.rename("port")
    await stop.wait()
    server.should_exit = True
    await serving


if __name__ == "__main__":
    telemetry_setup.set_up("front")
    asyncio.run(_serve())
