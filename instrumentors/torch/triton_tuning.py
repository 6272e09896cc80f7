"""How Inductor's tuners of kernels of Triton are read: a span around what each of them tries.

What is tried is abandoned, also where it was compiled well: the graph does not run it, or runs it under a trip
of its own.
"""

from __future__ import annotations

from collections.abc import Generator
from contextvars import ContextVar

from otel_kernel.beside import SideSpan, start_parent
from otel_kernel.instrumentors.torch.frames import RUNTIME
from otel_kernel.instrumentors.torch.triton_kernels import ABSORBED, LAYER, name_of
from otel_kernel.records import Abandoned
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip

_descends: ContextVar[bool] = ContextVar("otel_kernel_torch_descends", default=False)


def read_choice(call: Call) -> Generator[SideSpan | None, None, None]:
    """Read `do_autotuning`, which tries the candidates for one operator."""
    yield from _tune(call, str(call.argument("name")))


def read_candidate(call: Call) -> Generator[SideSpan | None, None, None]:
    """Read `TritonTemplateCaller.precompile`, on a thread that knows nothing of the operator."""
    yield from _tune(call, str(getattr(call.instance, "name", "candidate")))


def read_descent(call: Call) -> Generator[SideSpan | None, None, None]:
    """Read `CoordescTuner.autotune`, which compiles ever better configurations of one kernel."""
    token = _descends.set(True)
    yield from _tune(call, str(getattr(call.instance, "name", "kernel")))
    _descends.reset(token)


def read_config(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `_precompile_config`: one that the tuner above tries is a trip, any other part of one."""
    if _descends.get():
        trip = yield Begin(name_of(call.instance), LAYER, absorbs=ABSORBED)
        trip.abandon(Abandoned.TUNING)


def _tune(call: Call, name: str) -> Generator[SideSpan | None, None, None]:
    span = start_parent(RUNTIME, "tune", name, LAYER)
    yield span
    if span is not None:
        span.end(call.error)
