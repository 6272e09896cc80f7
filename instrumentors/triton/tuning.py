"""How a round of Triton's autotuner is read: one span around the trips of all its candidates."""

from __future__ import annotations

import weakref
from collections.abc import Generator
from contextvars import ContextVar
from typing import Any

from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.errors import OutOfResources, PTXASError

from otel_kernel.beside import SideSpan, start_parent
from otel_kernel.instrumentors.triton.fields import LAYER, RUNTIME, name_of
from otel_kernel.shapes import Call

_DISCARDS = (OutOfResources, CompileTimeAssertionFailure, PTXASError)
"""What the tuner answers by scoring a candidate as endlessly slow."""


class _Round:
    """The candidates of one tuner that are still to be tried."""

    __slots__ = ("left", "span", "tuner")

    def __init__(self, tuner: Any, candidates: int) -> None:
        self.tuner = weakref.ref(tuner)
        self.left = candidates
        self.span: SideSpan | None = None


_round: ContextVar[_Round | None] = ContextVar("otel_kernel_triton_round", default=None)
_tuning: ContextVar[bool] = ContextVar("otel_kernel_triton_tuning", default=False)


def read_candidates(call: Call) -> Generator[None, None, None]:
    """Read `Autotuner.prune_configs`, which begins a round and says how many candidates it has."""
    yield
    if call.error is None:
        _round.set(_Round(call.instance, len(call.result)))


def read_candidate(call: Call) -> Generator[SideSpan | None, None, None]:
    """Read `Autotuner._bench`, once for each candidate."""
    round_ = _round.get()
    if round_ is None or round_.tuner() is not call.instance or round_.left < 1:
        round_ = _Round(call.instance, 1)
    if round_.span is None:
        round_.span = start_parent(RUNTIME, "tune", name_of(call.instance.base_fn), LAYER)
    round_.left -= 1
    token = _tuning.set(True)
    yield round_.span
    _tuning.reset(token)
    _round.set(round_)  # a kernel that is tuned inside of this one has left its own round
    if round_.span is not None and (round_.left == 0 or call.error is not None):
        round_.span.end(call.error)
        round_.span, round_.left = None, 0


def is_discarded(error: BaseException) -> bool:
    """Whether a tuner around this code takes `error` for an answer."""
    return _tuning.get() and isinstance(error, _DISCARDS)
