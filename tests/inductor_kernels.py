"""Kernels of Triton as Inductor writes them, for a device that is not there unless the environment names one.

For the device that is not there all up to the load is torch's and Triton's own: real cubins in real stores.
"""

# Torch is half typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import contextlib
import os
from typing import Any

IS_REAL = os.environ.get("TORCH_TEST_DEVICE") == "cuda"

SIZE = 1024

_SOURCE = """
import triton
import triton.language as tl

from torch._inductor.runtime import triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties

@triton_heuristics.pointwise(
    size_hints={'x': 1024},
    filename=__file__,
    triton_meta={
        'signature': {'values': '*fp32', 'result': '*fp32', 'xnumel': 'i32', 'XBLOCK': 'constexpr'},
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
def NAME(values, result, xnumel, XBLOCK: tl.constexpr):
    index = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    mask = index < xnumel
    otk_secret_marker = tl.load(values + index, mask)
    tl.store(result + index, otk_secret_marker * FACTOR, mask)
"""


def source_of(name: str, factor: str) -> str:
    """Return the source of a kernel that multiplies by `factor`, as it stands in the code of a graph."""
    return _SOURCE.replace("NAME", name).replace("FACTOR", factor)


def compile_kernel(name: str, factor: str) -> Any:
    """Do what the code of a graph does, and wait for the kernel where a worker compiles it."""
    from torch._inductor.async_compile import AsyncCompile

    kernel: Any = AsyncCompile().triton(name, source_of(name, factor))
    return kernel.result() if hasattr(kernel, "result") else kernel


def launch(kernel: Any) -> float:
    """Run a kernel over ones, and return the sum."""
    if not IS_REAL:
        return float(kernel.launchers[0]())
    import torch

    values = torch.ones(SIZE, device="cuda")
    result = torch.empty_like(values)
    kernel.run(values, result, SIZE, stream=torch.cuda.current_stream().cuda_stream)
    return float(result.sum())


class _Launcher:
    """What stands for a kernel on the device."""

    def __call__(self) -> float:
        return 0.0


def stand_in_for_the_device() -> None:
    """Let a kernel be on a device that is not there, once it is compiled."""
    if IS_REAL:
        return
    import torch._dynamo.device_interface
    import torch._inductor.runtime.triton_helpers
    import torch._inductor.runtime.triton_heuristics

    heuristics: Any = torch._inductor.runtime.triton_heuristics
    interface: Any = torch._dynamo.device_interface
    helpers: Any = torch._inductor.runtime.triton_helpers

    def nothing(*_arguments: object) -> None:
        return

    def launcher(result: Any) -> object:
        if "unloadable" in str(result.inductor_meta["kernel_name"]):
            raise RuntimeError("the device refuses")
        return _Launcher()

    heuristics.CachingAutotuner.get_device_interface = nothing
    heuristics.TritonCompileResult.make_launcher = launcher
    heuristics.StaticTritonCompileResult.make_launcher = launcher
    interface.DeviceGuard = _no_guard
    helpers.set_driver_to_gpu = nothing


def _no_guard(*_arguments: object) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()
