"""The processes in which Inductor compiles kernels of Triton, and what they leave for the one they work for.

A worker tells no trips. Where it was started with otel-kernel in it, it leaves word on the kernel that it
sends back: which of Triton's own compiles found their kernel in the store, and by which `ptxas`. The word is
taken off again before the kernel can get into a store of Inductor's.
"""

from __future__ import annotations

import os
import re
import sys
import time
import weakref
from collections.abc import Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

from otel_kernel.shapes import Call
from otel_kernel.trip import current

_STATE = "torch._inductor.compile_worker.utils"

_WORD = "_otel_kernel_word"

_PTXAS_VERSION = re.compile(r"\bV(\d+\.\d+\.\d+)")


@dataclass(slots=True)
class Job:
    """A kernel that a worker was asked to compile."""

    name: str
    source: str
    submitted_ns: int
    """Wall clock."""
    done_ns: int | None = None
    """Wall clock; None until the worker has answered."""


_jobs: weakref.WeakKeyDictionary[Any, Job] = weakref.WeakKeyDictionary()
"""By the future of the answer, until somebody has asked it."""

_hits: ContextVar[list[bool] | None] = ContextVar("otel_kernel_torch_hits", default=None)
"""In a worker: whether each compile of Triton's found its kernel in the store."""


def is_worker() -> bool:
    """Whether this process compiles for another one; a fork changes the answer."""
    state = sys.modules.get(_STATE)
    return state is not None and not state.in_toplevel_process()


def read_submit(call: Call) -> Generator[None, None, None]:
    """Read `submit` of a pool of processes: what is asked for, and when."""
    submitted = time.time_ns()
    yield
    if call.error is not None or len(call.args) < 2:
        return
    function, load = call.args[0], call.args[1]
    if getattr(function, "__name__", "") != "_worker_compile_triton" or not isinstance(load, partial):
        return
    job = Job(str(load.args[0]), str(load.args[1]), submitted)
    _jobs[call.result] = job
    call.result.add_done_callback(partial(_done, job))


def _done(job: Job, _future: object) -> None:
    job.done_ns = time.time_ns()


def take_job(future: Any) -> Job | None:
    """Return what a future is the answer to, once."""
    return _jobs.pop(future, None) if future is not None else None


def read_work(call: Call) -> Generator[None, None, None]:
    """Read `CachingAutotuner._precompile_worker`, where it is a worker's: leave word on the kernel."""
    if not is_worker():
        yield
        return
    hits: list[bool] = []
    token = _hits.set(hits)
    yield
    _hits.reset(token)
    if call.error is None and hits:
        ptxas = os.environ.get("TRITON_PTXAS_PATH")
        word = {"hits": hits, "ptxas": ptxas, "compiler": compiler_in_key(call.instance)}
        setattr(call.instance, _WORD, word)


def read_work_listener(event: Mapping[str, Any]) -> None:
    """Read what Triton tells its listener in a worker."""
    hits = _hits.get()
    if hits is not None:
        hits.append(bool(event["cache_hit"]))


def read_return(call: Call) -> Generator[None, None, None]:
    """Read `restore_after_unpickle`, the first that happens to a kernel that came back: take the word off."""
    word: Any = vars(call.instance).pop(_WORD, None)
    trip = current()
    if word is not None and trip is not None:
        trip.notes["word"] = word
    yield


def compiler_in_key(autotuner: Any) -> str:
    """Return what stands in Triton's key for the compiler; only where Triton has just made a key itself.

    It asks `ptxas` for its version, once in a process, and keeps the answer.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    properties = autotuner.device_props
    text = str(make_backend(GPUTarget(properties.type, properties.cc, properties.warp_size)).hash())
    version = _PTXAS_VERSION.search(text)
    return f"ptxas {version[1]}" if version is not None else text
