"""Triton, on a device that is not there unless the environment names one."""

from __future__ import annotations

import os
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from conformance.adapter import Adapter, After

_IS_REAL = os.environ.get("TRITON_TEST_DEVICE") == "cuda"


def _variables(store: Path) -> dict[str, str]:
    return {"TRITON_CACHE_DIR": str(store)}


def _entries(store: Path) -> list[Path]:
    return sorted(store.rglob("main_kernel.cubin"))


def _without_head(cubin: bytes) -> bytes:
    # A driver of CUDA was seen to hang for minutes at one that is cut short.
    return b"\xff" * 16 + cubin[16:]


def _version() -> tuple[int, ...]:
    spec = find_spec("triton")
    installed = spec is not None and spec.origin is not None  # a folder of tests of that name is no runtime
    return tuple(int(part) for part in version("triton").split(".")[:2]) if installed else ()


# Only the driver looks into the artifact. Below 3.8 Triton takes an entry for whole whose files are gone.
_DAMAGED: After = "raises RuntimeError" if _IS_REAL else "loaded"
_DELETED: After = "compiled" if _version() >= (3, 8) else "raises KeyError"

# 3.4 does not tell that a launch goes on to load, nor the device, nor how long the key takes.
_TELLS_OF_LAUNCHES = _version() >= (3, 5)
_LAUNCHED: dict[str, type | object] = {
    "compute.kernel.device": "cuda:0",
    "compute.kernel.stage.key": int,
    "compute.kernel.stage.load": int,
}

_ALWAYS: dict[str, type | object] = {
    **(_LAUNCHED if _TELLS_OF_LAUNCHES else {}),
    "code.function.name": "kernels.main_kernel",
    "code.file.path": str,
    "code.line.number": int,
    "compute.kernel.artifact.size": int,
    "compute.kernel.build": str,
    "compute.kernel.device_loaded": _TELLS_OF_LAUNCHES,
    "compute.kernel.identity": str,
    "compute.kernel.key.build_id": str,
    "compute.kernel.key.id": str,
    "compute.kernel.key.component.*": str,
    "compute.kernel.key.component_other": str,
    "compute.kernel.source.location": "inline",
    "compute.kernel.source.sha256": str,
    "compute.kernel.source.size": int,
    "compute.kernel.source.text": str,
    "compute.kernel.specialization": str,
    "compute.kernel.store.entry": str,
    "compute.kernel.store.kind": "triton.file",
    "compute.kernel.store.location": str,
    "compute.kernel.target": "cuda:90",
}

ADAPTER = Adapter(
    runtime="triton",
    module="triton",
    instrumentor="otel_kernel.instrumentors.triton:TritonInstrumentor",
    main_kernel="kernels.main_kernel",
    second_kernel="kernels.second_kernel",
    entries=_entries,
    variables=_variables,
    compiled={
        **_ALWAYS,
        "compute.kernel.compilation.outcome": "compiled",
        "compute.kernel.ir.location": "inline",
        "compute.kernel.ir.sha256": str,
        "compute.kernel.ir.size": int,
        "compute.kernel.ir.text": str,
        "compute.kernel.stage.ir": int,
        "compute.kernel.stage.ttir": int,
        "compute.kernel.stage.ttgir": int,
        "compute.kernel.stage.llir": int,
        "compute.kernel.stage.ptx": int,
        "compute.kernel.stage.cubin": int,
        "compute.kernel.stage.store": int,
        "compute.kernel.store.stored": True,
    },
    loaded={
        **_ALWAYS,
        "compute.kernel.compilation.outcome": "loaded",
        "compute.kernel.stage.lookup": int,
    },
    corrupt=_without_head,
    damaged={"corrupted": _DAMAGED, "emptied": _DAMAGED, "deleted": _DELETED},
    rejected={"deleted": True},
    read_only="raises PermissionError",
    blocked="raises NotADirectoryError",
    key_of_unstored="present",
    failure="triton.compiler.errors.CompilationError",
    load_failure="triton.runtime.errors.OutOfResources",
    abandoned=frozenset({"tuning"}),
    trips_of_two_threads=2,
)
