"""A real compilation at level off, with us and without us."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
from opentelemetry.sdk.trace import TracerProvider

from benchmarks.harness import Line, Rounds, processor_seconds, within_noise
from otel_kernel.instrumentors.numba import NumbaInstrumentor

_ROUNDS = 40


def _add(left: Any, right: Any) -> Any:
    return left + right


def _compile() -> None:
    numba.njit(_add)(1, 2)


def _plain() -> float:
    return processor_seconds(_compile)


def _at_level_off() -> float:
    instrumentor = NumbaInstrumentor()
    instrumentor.instrument(tracer_provider=TracerProvider(shutdown_on_exit=False), level="off")
    took = processor_seconds(_compile)
    instrumentor.uninstrument()
    return took


def lines() -> Iterator[Line]:
    """Measure for a small function of Numba."""
    rounds = Rounds({"off": _at_level_off, "plain": _plain, "plain again": _plain}, _ROUNDS)
    yield within_noise(
        "compilation by Numba, at level off / without",
        rounds.ratios("off", "plain"),
        rounds.ratios("plain again", "plain"),
    )
