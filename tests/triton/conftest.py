"""Triton on a device that is not there, instrumented, with an empty store."""

# Triton has no types that say enough.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from telemetry import Telemetry

_spec = find_spec("triton")
# This folder of tests is no runtime either.
collect_ignore_glob = [] if _spec is not None and _spec.origin is not None else ["test_*.py"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store."""
    folder = tmp_path / "store"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # 3.9 warns where it is not set
    return folder


@pytest.fixture
def device() -> Iterator[Any]:
    """The device, as it is at the start and is left afterwards."""
    module = import_module("triton_device")
    vars(module.device).update(vars(module.Device()))
    yield module.device
    vars(module.device).update(vars(module.Device()))


def forget() -> None:
    """Make Triton forget what is in memory, as if the process had just started."""
    for kernel in vars(import_module("triton_kernels")).values():
        # One that is tuned holds the function.
        functions: tuple[Any, ...] = (kernel, getattr(kernel, "fn", None))
        for function in functions:
            if hasattr(function, "device_caches"):
                function.device_caches.clear()
                vars(function).pop("compile", None)


@pytest.fixture
def restart() -> Any:
    """What makes Triton forget what is in memory."""
    return forget


@pytest.fixture
def triton_telemetry(telemetry: Telemetry, store: Path, device: Any) -> Iterator[Telemetry]:
    """What an instrumented Triton says."""
    from otel_kernel.instrumentors.triton import TritonInstrumentor

    forget()
    TritonInstrumentor().instrument()
    yield telemetry
    TritonInstrumentor().uninstrument()
    knobs: Any = import_module("triton.knobs")

    assert knobs.compilation.listener is None
