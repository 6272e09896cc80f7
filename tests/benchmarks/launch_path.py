"""A launch of a kernel that is in memory, with us and without us."""

# Triton has no types that say enough.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from benchmarks.harness import Line, Rounds, processor_seconds, within_noise
from otel_kernel.instrumentor import KernelInstrumentor

_ROUNDS = 60


class _Pair:
    """A kernel that was compiled with us, launched while we are there, and the same without us."""

    def __init__(self, instrumentor: KernelInstrumentor, fresh: Callable[[], Any], calls: int) -> None:
        """Remember how a kernel is made.

        Args:
            instrumentor: of the runtime.
            fresh: returns what launches a kernel that is not yet compiled.
            calls: launches in a round.
        """
        self._instrumentor = instrumentor
        self._fresh = fresh
        self._calls = calls

    def with_us(self) -> float:
        """Return the seconds of a launch."""
        self._instrumentor.instrument(
            tracer_provider=TracerProvider(shutdown_on_exit=False),
            meter_provider=MeterProvider(shutdown_on_exit=False),
        )
        took = self.without_us()
        self._instrumentor.uninstrument()
        return took

    def without_us(self) -> float:
        """Return the seconds of a launch."""
        launch = self._fresh()
        launch()
        return processor_seconds(launch, self._calls)

    def line(self, name: str) -> Line:
        """Measure."""
        variants = {"with": self.with_us, "without": self.without_us, "without again": self.without_us}
        rounds = Rounds(variants, _ROUNDS)
        return within_noise(name, rounds.ratios("with", "without"), rounds.ratios("without again", "without"))


def lines() -> Iterator[Line]:
    """Measure for Numba on the CPU, and for Triton on a device that is not there."""
    yield _numba().line("launch of a Numba kernel, with / without")
    with tempfile.TemporaryDirectory() as store:
        os.environ.update(
            TRITON_CACHE_DIR=store, TRITON_DEFAULT_FP_FUSION="1"
        )  # 3.9 warns without the latter
        yield _triton().line("launch of a Triton kernel, with / without")


def _numba() -> _Pair:
    import numba

    from otel_kernel.instrumentors.numba import NumbaInstrumentor

    def fresh() -> Callable[[], object]:
        return partial(numba.njit(_add), 1, 2)

    return _Pair(NumbaInstrumentor(), fresh, 50_000)


def _add(left: Any, right: Any) -> Any:
    return left + right


def _triton() -> _Pair:
    import triton
    from triton_device import floats
    from triton_kernels import scale

    from otel_kernel.instrumentors.triton import TritonInstrumentor

    values = floats(64)

    def fresh() -> Callable[[], object]:
        kernel: Any = triton.jit(scale.fn)
        return partial(kernel[(1,)], values, 64)

    return _Pair(TritonInstrumentor(), fresh, 2_000)
