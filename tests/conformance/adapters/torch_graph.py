"""Graphs of torch.compile, by Inductor's own store alone."""

from __future__ import annotations

from pathlib import Path

from conformance.adapter import Adapter


def _variables(store: Path) -> dict[str, str]:
    # An entry of AOTAutograd's store that has lost its graph is a trip of its own, and Inductor starts
    # processes for kernels of Triton, which none of these needs.
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(store),
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",  # a forked child could not ask a device that its parent has asked
    }


def _entries(store: Path) -> list[Path]:
    return sorted(path for path in store.glob("fxgraph/*/*/*") if not path.name.startswith("."))


_ALWAYS: dict[str, type | object] = {
    "code.function.name": "kernels.main_kernel",
    "code.file.path": str,
    "code.line.number": int,
    "compute.kernel.build": str,
    "compute.kernel.compilation.id": "0/0",
    "compute.kernel.device_loaded": True,
    "compute.kernel.identity": str,
    "compute.kernel.key.build_id": str,
    "compute.kernel.key.id": str,
    "compute.kernel.key.component.*": str,
    "compute.kernel.source.location": "inline",
    "compute.kernel.source.sha256": str,
    "compute.kernel.source.size": int,
    "compute.kernel.source.text": str,
    "compute.kernel.specialization": "f32[4, 4][4, 1]cpu",
    "compute.kernel.stage.key": int,
    "compute.kernel.stage.lookup": int,
    "compute.kernel.store.entry": str,
    "compute.kernel.store.kind": "torch.inductor.fxgraph",
    "compute.kernel.store.location": str,
    "compute.kernel.target": "cpu",
}

ADAPTER = Adapter(
    runtime="torch",
    name="torch_graph",
    layer="torch.inductor.graph",
    module="torch",
    instrumentor="otel_kernel.instrumentors.torch:TorchInstrumentor",
    main_kernel="kernels.main_kernel[forward]",
    second_kernel="kernels.second_kernel[forward]",
    entries=_entries,
    variables=_variables,
    compiled={
        **_ALWAYS,
        "compute.kernel.artifact.size": int,
        "compute.kernel.compilation.outcome": "compiled",
        "compute.kernel.compilation.reason": "the FX graph cache has no entry under this key",
        "compute.kernel.ir.location": "inline",
        "compute.kernel.ir.sha256": str,
        "compute.kernel.ir.size": int,
        "compute.kernel.ir.text": str,
        "compute.kernel.stage.codegen": int,
        "compute.kernel.stage.kernels": int,
        "compute.kernel.stage.lower": int,
        "compute.kernel.store.lookup": "miss",
        "compute.kernel.store.stored": True,
    },
    loaded={
        **_ALWAYS,
        "compute.kernel.compilation.original_ns": int,
        "compute.kernel.compilation.outcome": "loaded",
        "compute.kernel.stage.kernels": int,
        "compute.kernel.store.lookup": "hit",
    },
    damaged={"corrupted": "compiled", "emptied": "compiled", "deleted": "compiled"},
    rejected={"corrupted": True, "emptied": True},
    read_only="raises torch._inductor.exc.InductorError",
    blocked="raises torch._inductor.exc.InductorError",
    key_of_unstored="disabled",
    failure="torch._inductor.exc.InductorError",
    load_failure="never",
    abandoned=frozenset({"retry"}),
    trips_of_two_threads=2,  # who has waited for Dynamo's lock does not look again
)
