"""Kernels of Triton that Inductor compiles in its own process, asked for as the code of a graph does."""

from __future__ import annotations

import os
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from conformance.adapter import Adapter, After

_IS_REAL = os.environ.get("TORCH_TEST_DEVICE") == "cuda"


def _variables(store: Path) -> dict[str, str]:
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(store),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TRITON_DEFAULT_FP_FUSION": "1",  # Triton 3.9 warns without it
    }


def _entries(store: Path) -> list[Path]:
    return sorted(store.rglob("main_kernel.cubin"))


def _deleted() -> After:
    spec = find_spec("triton")
    if spec is None or spec.origin is None:
        return "compiled"
    return "compiled" if tuple(map(int, version("triton").split(".")[:2])) >= (3, 8) else "raises KeyError"


# Only the driver looks into the artifact.
_DAMAGED: After = "raises RuntimeError" if _IS_REAL else "loaded"

_ALWAYS: dict[str, type | object] = {
    "compute.kernel.build": str,
    "compute.kernel.device": "cuda:0",
    "compute.kernel.device_loaded": True,
    "compute.kernel.identity": str,
    "compute.kernel.key.build_id": str,
    "compute.kernel.key.id": str,
    "compute.kernel.key.component.compiler": str,
    "compute.kernel.key.component.configs": "1",
    "compute.kernel.key.component.made_in": "parent",
    "compute.kernel.key.component.ptxas": str,
    "compute.kernel.key.component.source": str,
    "compute.kernel.source.location": "inline",
    "compute.kernel.source.sha256": str,
    "compute.kernel.source.size": int,
    "compute.kernel.source.text": str,
    "compute.kernel.stage.load": int,
    "compute.kernel.store.entry": str,
    "compute.kernel.store.kind": "triton.file",
    "compute.kernel.store.location": str,
    "compute.kernel.target": "cuda:90",
}

ADAPTER = Adapter(
    runtime="torch",
    name="torch_triton_kernel",
    layer="torch.inductor.triton_kernel",
    module="triton",
    instrumentor="otel_kernel.instrumentors.torch:TorchInstrumentor",
    main_kernel="main_kernel",
    second_kernel="second_kernel",
    entries=_entries,
    variables=_variables,
    compiled={
        **_ALWAYS,
        "compute.kernel.compilation.outcome": "compiled",
        "compute.kernel.stage.ttir": int,
        "compute.kernel.stage.ttgir": int,
        "compute.kernel.stage.llir": int,
        "compute.kernel.stage.ptx": int,
        "compute.kernel.stage.cubin": int,
        "compute.kernel.store.stored": True,
    },
    loaded={**_ALWAYS, "compute.kernel.compilation.outcome": "loaded"},
    damaged={"corrupted": _DAMAGED, "emptied": _DAMAGED, "deleted": _deleted()},
    read_only="never",
    blocked="never",
    key_of_unstored="present",
    failure="triton.compiler.errors.CompilationError",
    load_failure="RuntimeError",
    abandoned=frozenset({"tuning"}),
)
