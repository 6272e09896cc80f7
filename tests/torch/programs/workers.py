"""Compiles kernels as Inductor writes them for a GPU, here and in its workers, where there is no GPU.

All up to the load is torch's and Triton's own: the pool and its processes, Triton's store, real cubins.
Where otel-kernel boots by itself, it is in the workers too.
"""

# Torch is half typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import contextlib
from typing import Any

import parts
from parts import part, raised_by

KERNEL = """
import triton
import triton.language as tl

from torch._inductor.runtime import triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties

@triton_heuristics.pointwise(
    size_hints={'x': 1024},
    filename=__file__,
    triton_meta={
        'signature': {'values': '*fp32', 'result': '*fp32', 'size': 'i32', 'XBLOCK': 'constexpr'},
        'device': DeviceProperties(
            type='cuda', index=0, multi_processor_count=132, cc=90, major=9, regs_per_multiprocessor=65536,
            max_threads_per_multi_processor=2048, warp_size=32,
        ),
        'constants': {},
        'native_matmul': False,
        'configs': [{(0,): [['tt.divisibility', 16]], (1,): [['tt.divisibility', 16]]}],
    },
    inductor_meta={
        'grid_type': 'Grid1D', 'kernel_name': 'NAME', 'mutated_arg_names': [], 'num_load': 1, 'num_reduction': 0,
        'autotune_pointwise': False, 'autotune_local_cache': True, 'backend_hash': 'a',
    },
    min_elem_per_thread=0,
)
@triton.jit
def NAME(values, result, size, XBLOCK: tl.constexpr):
    index = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    mask = index < size
    otk_secret_marker = tl.load(values + index, mask)
    tl.store(result + index, otk_secret_marker * FACTOR, mask)
"""


def _no_guard(*_arguments: object) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def stand_in_for_the_device() -> None:
    """Let a kernel be on a device that is not there, once it is compiled."""
    import torch._dynamo.device_interface
    import torch._inductor.runtime.triton_helpers
    import torch._inductor.runtime.triton_heuristics

    heuristics: Any = torch._inductor.runtime.triton_heuristics
    interface: Any = torch._dynamo.device_interface
    helpers: Any = torch._inductor.runtime.triton_helpers

    def nothing(*_arguments: object) -> None:
        return

    def launcher(_result: object) -> object:
        return object()

    heuristics.CachingAutotuner.get_device_interface = nothing
    heuristics.TritonCompileResult.make_launcher = launcher
    heuristics.StaticTritonCompileResult.make_launcher = launcher
    interface.DeviceGuard = _no_guard
    helpers.set_driver_to_gpu = nothing


def compile_kernel(name: str, factor: str) -> None:
    from torch._inductor.async_compile import AsyncCompile

    kernel: Any = AsyncCompile().triton(name, KERNEL.replace("NAME", name).replace("FACTOR", factor))
    if hasattr(kernel, "result"):
        kernel = kernel.result()
    parts.value(f"ours left on it in {parts.current()}", [word for word in vars(kernel) if "otel" in word])


def main() -> None:
    parts.watch(level="basic")
    stand_in_for_the_device()
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
