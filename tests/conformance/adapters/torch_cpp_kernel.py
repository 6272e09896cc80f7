"""C++ kernels of torch.compile, each inside the trip of a graph."""

from __future__ import annotations

from pathlib import Path

import torch_store

from conformance.adapter import Adapter


def _variables(store: Path) -> dict[str, str]:
    if not store.exists():
        torch_store.copy_to(store)
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(store),
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",  # a forked child could not ask a device that its parent has asked
    }


def _entries(store: Path) -> list[Path]:
    """Return the libraries of kernels; beside them are attempts at instructions of the processor."""
    prepared = {path.name for path in torch_store.libraries()}
    return sorted(path for path in store.glob("*/*.main.so") if path.name not in prepared)


_ALWAYS: dict[str, type | object] = {
    "compute.kernel.artifact.size": int,
    "compute.kernel.build": str,
    "compute.kernel.device": "cpu:0",
    "compute.kernel.device_loaded": True,
    "compute.kernel.identity": str,
    "compute.kernel.key.build_id": str,
    "compute.kernel.key.id": str,
    "compute.kernel.key.component.*": str,
    "compute.kernel.session.parent_seq": int,
    "compute.kernel.source.location": "inline",
    "compute.kernel.source.sha256": str,
    "compute.kernel.source.size": int,
    "compute.kernel.source.text": str,
    "compute.kernel.store.entry": str,
    "compute.kernel.store.kind": "torch.inductor.codecache",
    "compute.kernel.store.location": str,
    "compute.kernel.target": str,
}

ADAPTER = Adapter(
    runtime="torch",
    name="torch_cpp_kernel",
    layer="torch.inductor.cpp_kernel",
    module="torch",
    instrumentor="otel_kernel.instrumentors.torch:TorchInstrumentor",
    main_kernel="cpp_fused_sin_0",
    second_kernel="cpp_fused_cos_0",
    entries=_entries,
    variables=_variables,
    compiled={
        **_ALWAYS,
        "compute.kernel.compilation.outcome": "compiled",
        "compute.kernel.stage.build": int,
        "compute.kernel.stage.load": int,
        "compute.kernel.store.stored": True,
    },
    loaded={**_ALWAYS, "compute.kernel.compilation.outcome": "loaded"},
    damaged={"deleted": "compiled"},
    read_only="never",
    blocked="never",
    key_of_unstored="disabled",
    failure="never",
    load_failure="never",
    abandoned=frozenset({"nested"}),
)
