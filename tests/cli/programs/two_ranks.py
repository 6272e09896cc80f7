"""Start two ranks of a job that share a store; each compiles two kernels, the second of them while it serves.

With the argument `warm` nothing is compiled while they serve.
"""

from __future__ import annotations

import os
import subprocess
import sys


def price(x: float) -> float:
    return x * 1.19


def late(x: float) -> float:
    return x * 0.9


def work(how: str) -> None:
    import otel_kernel

    otel_kernel.phase("startup")
    from numba import njit

    for function in (price, late) if how == "warm" else (price,):
        njit("float64(float64)")(function)
    otel_kernel.phase("serving")
    njit("float64(float64)", cache=True)(price)
    if how == "cold":
        njit("float64(float64)")(late)


if __name__ == "__main__":
    if "RANK" in os.environ:
        work(sys.argv[1])
    else:
        ranks = [
            subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "RANK": rank, "WORLD_SIZE": "2"})
            for rank in "01"
        ]
        sys.exit(max(rank.wait() for rank in ranks))
