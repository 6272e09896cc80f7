"""Numba's CPU compiler."""

from __future__ import annotations

from pathlib import Path

from conformance.adapter import Adapter


def _variables(store: Path) -> dict[str, str]:
    # The second one is where Numba keeps what it cannot keep in the first.
    return {"NUMBA_CACHE_DIR": str(store), "XDG_CACHE_HOME": str(store / "elsewhere")}


def _entries(store: Path) -> list[Path]:
    return sorted(store.rglob("kernels.main_kernel-*.nbc"))


_STORED: dict[str, type | object] = {
    "code.function.name": "kernels.main_kernel",
    "code.file.path": str,
    "code.line.number": int,
    "compute.kernel.artifact.size": int,
    "compute.kernel.build": str,
    "compute.kernel.device_loaded": True,
    "compute.kernel.identity": str,
    "compute.kernel.key.build_id": str,
    "compute.kernel.key.id": str,
    "compute.kernel.key.component.base_name": str,
    "compute.kernel.key.component.bytecode": str,
    "compute.kernel.key.component.closure": str,
    "compute.kernel.key.component.cpu": str,
    "compute.kernel.key.component.cpu_features": str,
    "compute.kernel.key.component.llvm": str,
    "compute.kernel.key.component.numba": str,
    "compute.kernel.key.component.options": str,
    "compute.kernel.key.component.python": str,
    "compute.kernel.key.component.signature": "(int64,)",
    "compute.kernel.key.component.source_digest": str,
    "compute.kernel.key.component.source_stamp": str,
    "compute.kernel.key.component.triple": str,
    "compute.kernel.specialization": "(int64,)",
    "compute.kernel.store.entry": str,
    "compute.kernel.store.kind": "numba.file",
    "compute.kernel.store.location": str,
    "compute.kernel.target": str,
}

ADAPTER = Adapter(
    runtime="numba",
    module="numba",
    instrumentor="otel_kernel.instrumentors.numba:NumbaInstrumentor",
    main_kernel="kernels.main_kernel",
    second_kernel="kernels.second_kernel",
    entries=_entries,
    variables=_variables,
    compiled={
        **_STORED,
        "compute.kernel.compilation.outcome": "compiled",
        "compute.kernel.ir.location": "inline",
        "compute.kernel.ir.sha256": str,
        "compute.kernel.ir.size": int,
        "compute.kernel.ir.text": str,
        "compute.kernel.source.location": "inline",
        "compute.kernel.source.sha256": str,
        "compute.kernel.source.size": int,
        "compute.kernel.source.text": str,
        "compute.kernel.stage.*": int,
        "compute.kernel.stage_other": int,
        "compute.kernel.store.stored": True,
    },
    loaded={**_STORED, "compute.kernel.compilation.outcome": "loaded"},
    damaged={
        "corrupted": "raises _pickle.UnpicklingError",
        "emptied": "raises EOFError",
        "deleted": "compiled",
    },
    rejected={"corrupted": True, "emptied": True},
    read_only="raises PermissionError",
    blocked="raises NotADirectoryError",
    key_of_unstored="disabled",
    failure="numba.core.errors.TypingError",
    load_failure="TypeError",
    abandoned=frozenset({"retry", "nested"}),
)
