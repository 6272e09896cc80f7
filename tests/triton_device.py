"""The device of Triton's tests: one that is not there, or with `TRITON_TEST_DEVICE=cuda` a real one.

For the device that is not there Triton compiles, loads and launches without a driver. All up to the load is
Triton's own: real PTX, cubins and hsaco. Importing this makes it the active driver.
"""

# Triton has no types that say enough.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

VERSION = tuple(map(int, version("triton").split(".")[:2]))

TELLS_OF_LAUNCHES = VERSION >= (3, 5)
"""Whether the compile function can be told that a launch goes on to load."""

IS_REAL = os.environ.get("TRITON_TEST_DEVICE") == "cuda"

CUDA = GPUTarget("cuda", 90, 32)
HIP = GPUTarget("hip", "gfx942", 64)


@dataclass
class Device:
    """What the driver answers, and what it was asked."""

    target: Any = CUDA
    current: int = 0
    threads: int = 1024
    """Threads that a kernel may have, as the driver says once it is loaded."""
    refusal: str | None = None
    """What the driver says when it refuses to load."""
    while_loading: Callable[[], object] | None = None
    loads: int = 0
    launches: int = 0


device = Device()


class _Utils:
    def get_device_properties(self, _device: int) -> dict[str, int]:
        return {"max_shared_mem": 232_448, "multiprocessor_count": 132, "warpSize": 32}

    def load_binary(self, _name: str, _kernel: bytes, _shared: int, _device: int) -> tuple[int, ...]:
        if device.while_loading is not None:
            device.while_loading()
        if device.refusal is not None:
            raise RuntimeError(device.refusal)
        device.loads += 1
        return (1, 2, 32, 0, device.threads)  # module, function, registers, spills, threads

    def unload_module(self, _module: int) -> None:
        return


class _Launcher:
    def __init__(self, _source: Any, _metadata: Any) -> None:
        return

    def __call__(self, *_arguments: Any) -> None:
        device.launches += 1


class StubDriver:
    """The driver, as Triton asks it."""

    launcher_cls = _Launcher

    def __init__(self) -> None:
        self.utils = _Utils()

    def get_current_target(self) -> Any:
        return device.target

    def get_current_device(self) -> int:
        return device.current

    def get_current_stream(self, _device: int) -> int:
        return 0

    def get_active_torch_device(self) -> None:
        return None

    def get_benchmarker(self) -> Callable[..., list[float]]:
        def measure(call: Callable[[], None], **_options: Any) -> list[float]:
            call()
            return [1.0, 1.0, 1.0]

        return measure


class Floats:
    """Stands for a tensor of floats."""

    from triton.language import float32 as dtype

    def data_ptr(self) -> int:
        return 1 << 20


def floats(size: int) -> Any:
    """Return `size` ones on the device."""
    if IS_REAL:
        from importlib import import_module

        return import_module("torch").ones(size, device="cuda")
    return Floats()


def total(values: Any) -> float:
    """Return the sum of what is on the device, 0 where there is none."""
    return float(values.sum()) if IS_REAL else 0.0


active: Any = driver.active if IS_REAL else StubDriver()
if IS_REAL:
    active.get_current_device()  # makes modules of the host now, which go into the store too and are no kernels
else:
    driver.set_active(active)
