"""Price an Asian option by Monte Carlo with Numba: seven kernels of every kind a program has.

The first run compiles them all; a second one loads from Numba's store what was cached.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numba import cfunc, guvectorize, njit, prange, vectorize

PATHS, STEPS = 20_000, 64


@njit(cache=True)
def drift(rate: float, volatility: float, step: float) -> float:
    return (rate - 0.5 * volatility * volatility) * step


@njit(cache=True)
def payoff(average: float, strike: float) -> float:
    return max(average - strike, 0.0)


@njit(cache=True, parallel=True)
def simulate(start, rate, volatility, horizon, strike, paths, steps):  # type: ignore[no-untyped-def]
    step = horizon / steps
    slope = drift(rate, volatility, step)
    spread = volatility * math.sqrt(step)
    values = np.empty(paths)
    for path in prange(paths):
        price, total = start, 0.0
        for _ in range(steps):
            price *= math.exp(slope + spread * np.random.standard_normal())
            total += price
        values[path] = payoff(total / steps, strike)
    return values


@vectorize(["float64(float64, float64, float64)"], cache=True)
def discount(value, rate, horizon):  # type: ignore[no-untyped-def]
    return value * math.exp(-rate * horizon)


@guvectorize(["(float64[:], float64[:])"], "(n)->(n)", cache=True)
def running_mean(values, means):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(values.size):
        total += values[i]
        means[i] = total / (i + 1)


@njit
def confidence(values):  # type: ignore[no-untyped-def] # no cache=True: compiled in every process
    return 1.96 * values.std() / math.sqrt(values.size)


@cfunc("float64(float64)", cache=True)
def squeeze(value):  # type: ignore[no-untyped-def]
    return 1.0 / (1.0 + math.exp(-value))


def main() -> int:
    values = discount(simulate(100.0, 0.03, 0.2, 1.0, 105.0, PATHS, STEPS), 0.03, 1.0)
    means = running_mean(values)
    print(f"price {means[-1]:.2f} +- {confidence(values):.2f}, squeezed {squeeze.ctypes(0.5):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
