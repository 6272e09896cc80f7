"""Scripts with more than one thread or process."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from conformance.harness import kernels, value, watch, wrap_points
from otel_kernel.trip import current


def two_threads_on_one_kernel() -> None:
    _two_threads(two_kernels=False)


def two_threads_on_two_kernels() -> None:
    _two_threads(two_kernels=True)


def _two_threads(*, two_kernels: bool) -> None:
    from conformance.spans import tracer_provider

    provider = tracer_provider()
    watch(tracer_provider=provider)
    program = kernels()
    tracer = provider.get_tracer("program")
    barrier = threading.Barrier(2)
    results: dict[str, object] = {}

    def work(name: str, call: Callable[[], object]) -> None:
        with tracer.start_as_current_span(name):
            barrier.wait()
            results[name] = call()

    threads = [
        threading.Thread(target=work, args=("one", program.main)),
        threading.Thread(target=work, args=("two", program.second if two_kernels else program.main)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    value("results", results)


def forked() -> None:
    watch()
    program = kernels()
    program.main()
    pid = os.fork()
    if pid == 0:
        program.main()
        program.second()
        os._exit(0)
    os.waitpid(pid, 0)
    program.second()
    value("pids", [os.getpid(), pid])


def forked_inside_a_trip() -> None:
    """Fork while a trip is open on this thread; the child must not take it for its own."""
    pids: list[int] = []

    def fork_once(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
        if current() is not None and not pids:
            pid = os.fork()
            pids.append(pid)
            if pid == 0:
                kernels().second()
                os._exit(0)
            os.waitpid(pid, 0)
        return wrapped(*args, **kwargs)

    wrap_points(fork_once)
    watch()
    kernels().main()
    value("pids", [os.getpid(), *pids])


def spawned() -> None:
    watch()
    kernels().main()
    child = multiprocessing.get_context("spawn").Process(target=_second_of_a_child)
    child.start()
    child.join()
    value("pids", [os.getpid(), child.pid])
    sys.exit(child.exitcode or 0)


def _second_of_a_child() -> None:
    watch()
    kernels().second()
