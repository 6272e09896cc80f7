"""Compiles kernels as Inductor writes them for a GPU, here and in its workers.

Where otel-kernel boots by itself, it is in the workers too.
"""

from __future__ import annotations

from typing import Any

import inductor_kernels
import parts
from parts import part, raised_by


def compile_kernel(name: str, factor: str) -> None:
    kernel: Any = inductor_kernels.compile_kernel(name, factor)
    names: list[str] = [*map(str, kernel.__dict__)]
    parts.value(f"ours left on it in {parts.current()}", [name for name in names if "otel" in name])


def main() -> None:
    parts.watch(level="basic")
    inductor_kernels.stand_in_for_the_device()
    from torch._inductor.async_compile import AsyncCompile, shutdown_compile_workers

    with part("here"):
        compile_kernel("triton_poi_here", "3.0")
    with part("here, in memory"):
        compile_kernel("triton_poi_here", "3.0")
    AsyncCompile.warm_pool()
    AsyncCompile.wait_pool_ready()
    with part("in a worker"):
        compile_kernel("triton_poi_there", "4.0")
    with part("in a worker, stored"):
        compile_kernel("triton_poi_there", "4.0")
    with part("in a worker, stored by this process"):
        compile_kernel("triton_poi_here", "3.0")
    with part("wrong in a worker"):
        parts.value("raised", raised_by(lambda: compile_kernel("triton_poi_wrong", "no_such_name")))
    shutdown_compile_workers()


if __name__ == "__main__":
    main()
