"""JAX, on the CPU unless the environment names another platform."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from conformance.adapter import Adapter

_PLATFORM = os.environ.get("JAX_PLATFORMS", "cpu")
_ON_CPU = _PLATFORM == "cpu"


def _variables(store: Path) -> dict[str, str]:
    return {
        "JAX_PLATFORMS": _PLATFORM,
        "JAX_COMPILATION_CACHE_DIR": str(store),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def _entries(store: Path) -> list[Path]:
    return sorted(store.glob("jit_main_kernel-*-cache"))


def _version() -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in version("jax").split(".")[:3])
    except PackageNotFoundError:
        return ()


def _error_of_xla() -> str:
    if _version() >= (0, 8):
        return "jax.errors.JaxRuntimeError"
    return (
        "jaxlib._jax.XlaRuntimeError" if _version() >= (0, 6, 1) else "jaxlib.xla_extension.XlaRuntimeError"
    )


# Below, the events of JAX do not say what was traced; the folder is part of the key up to 0.10.
_OF_THE_VERSION: dict[str, type | object] = {}
if _version() >= (0, 6, 1):
    _OF_THE_VERSION["compute.kernel.stage.trace"] = int
if _version() < (0, 11):
    _OF_THE_VERSION["compute.kernel.key.component.cache_folders"] = str

_STORED: dict[str, type | object] = {
    **_OF_THE_VERSION,
    "code.function.name": "main_kernel",
    "code.file.path": str,
    "code.line.number": int,
    "compute.kernel.artifact.size": int,
    "compute.kernel.build": str,
    "compute.kernel.device": "cpu:0" if _ON_CPU else str,
    "compute.kernel.device_loaded": _ON_CPU,
    "compute.kernel.identity": str,
    "compute.kernel.key.build_id": str,
    "compute.kernel.key.id": str,
    "compute.kernel.key.component.compile_options": str,
    "compute.kernel.key.component.compression": str,
    "compute.kernel.key.component.devices": str,
    "compute.kernel.key.component.jaxlib": str,
    "compute.kernel.key.component.module": str,
    "compute.kernel.key.component.name": "jit_main_kernel",
    "compute.kernel.key.component.platform": str,
    "compute.kernel.key.component.topology": str,
    "compute.kernel.source.location": "inline",
    "compute.kernel.source.sha256": str,
    "compute.kernel.source.size": int,
    "compute.kernel.source.text": str,
    "compute.kernel.specialization": "(f32[])",
    "compute.kernel.stage.key": int,
    "compute.kernel.stage.lower": int,
    "compute.kernel.stage.store_read": int,
    "compute.kernel.store.entry": str,
    "compute.kernel.store.kind": "jax.file",
    "compute.kernel.store.location": str,
    "compute.kernel.target": str,
}

ADAPTER = Adapter(
    runtime="jax",
    module="jax",
    instrumentor="otel_kernel.instrumentors.jax:JaxInstrumentor",
    main_kernel="jit(main_kernel)",
    second_kernel="jit(second_kernel)",
    entries=_entries,
    variables=_variables,
    compiled={
        **_STORED,
        "compute.kernel.compilation.outcome": "compiled",
        "compute.kernel.ir.location": "inline",
        "compute.kernel.ir.sha256": str,
        "compute.kernel.ir.size": int,
        "compute.kernel.ir.text": str,
        "compute.kernel.stage.compile": int,
        "compute.kernel.stage.store_write": int,
        "compute.kernel.store.stored": True,
    },
    loaded={
        **_STORED,
        "compute.kernel.compilation.outcome": "loaded",
        "compute.kernel.compilation.original_ns": int,
    },
    damaged={"corrupted": "compiled", "emptied": "compiled", "deleted": "compiled"},
    rejected={"corrupted": True, "emptied": True},
    read_only="compiled",
    blocked="compiled",
    key_of_unstored="present",
    failure=_error_of_xla(),
    load_failure="IsADirectoryError",
    abandoned=frozenset(),
)
