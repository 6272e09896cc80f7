"""How Inductor's tuners of kernels of Triton are read: a span around what each of them tries.

What is tried is abandoned, also where it was compiled well: the graph does not run it, or runs it under a trip
of its own.
"""

from __future__ import annotations

from collections.abc import Generator
from contextvars import ContextVar

from otel_kernel.instrumentors.torch.triton_kernels import ABSORBED, LAYER, name_of, tuning_round
from otel_kernel.records import Abandoned
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip

_descends: ContextVar[bool] = ContextVar("otel_kernel_torch_descends", default=False)


def read_choice(call: Call) -> Generator[None, None, None]:
    """Read `do_autotuning`, which tries the candidates for one operator."""
    with tuning_round(str(call.argument("name"))):
        yield


def read_candidate(call: Call) -> Generator[None, None, None]:
    """Read `TritonTemplateCaller.precompile`, on a thread that knows nothing of the operator."""
    with tuning_round(str(getattr(call.instance, "name", "candidate"))):
        yield


def read_descent(call: Call) -> Generator[None, None, None]:
    """Read `CoordescTuner.autotune`, which compiles ever better configurations of one kernel."""
    token = _descends.set(True)
    with tuning_round(str(getattr(call.instance, "name", "kernel"))):
        yield
    _descends.reset(token)


def read_config(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `_precompile_config`: one that the tuner above tries is a trip, any other part of one."""
    if _descends.get():
        trip = yield Begin(name_of(call.instance), LAYER, absorbs=ABSORBED)
        trip.abandon(Abandoned.TUNING)
