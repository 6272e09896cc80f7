"""Trips of a small fleet, made up so that the answer to every question that is asked of one is known.

A service with two ranks that share a store is started three times: cold, again, and with a new image. The new
release compiles while it serves, for shapes that its warm-up did not cover, and a request waits for that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Final

from otel_kernel import semconv
from otel_kernel.records import (
    AttributeValue,
    CompilationOutcome,
    KernelCacheKey,
    Session,
    TextDigest,
    Trip,
    digest128,
    hex128,
)

COMPILED, LOADED, _ = CompilationOutcome
SERVICE: Final = "shop/ranking"
SECOND: Final = 10**9

REQUEST_TRACE: Final = hex128(digest128("POST /rank"))
"""Trace of the request that waited."""

REQUEST_NS: Final = (3599 * SECOND + 500 * 10**6, 40 * SECOND)
"""When the request came, after the start of its process, and how long it took."""

_READ_ONLY: Final = "OSError: [Errno 30] Read-only file system"
_BUILDS: Final = {
    "1.4.0": {"torch": "torch 2.13.0; inductor", "triton": "triton 3.5.1; ptxas V12.8.93"},
    "1.5.0": {"torch": "torch 2.13.0; inductor", "triton": "triton 3.6.0; ptxas V12.9.41"},
}
_NUMBA: Final = "numba 0.66.0; llvmlite 0.48.0; LLVM 20.1.8"
_STORES: Final = {
    "torch.inductor.graph": ("torch.fx_graph", "/var/cache/shop/inductor/fxgraph"),
    "triton": ("triton.file", "/var/cache/shop/triton"),
    "numba": ("numba.file", "/srv/shop/__pycache__"),
}
_STAGES: Final = {
    "torch.inductor.graph": {"lowering": 0.25, "codegen": 0.15, "compile_kernels": 0.5, "load": 0.05},
    "triton": {"ttir": 0.05, "ttgir": 0.1, "llir": 0.2, "ptx": 0.1, "cubin": 0.5},
    "numba": {"type_inference": 0.3, "native_lowering": 0.6},
}


@dataclass
class Process:
    """One process of the fleet: what its spans' resource says, and its trips."""

    run: str
    rank: int
    release: str
    started: datetime
    trips: list[Trip] = field(default_factory=list[Trip])

    @property
    def name(self) -> str:
        """The name of its pod."""
        return f"ranking-{self.run}-{self.rank}"

    @property
    def session(self) -> Session:
        """The session of its trips."""
        return Session(id=_hex(f"session {self.name}"), run=_hex(f"run {self.run}"))

    @property
    def resource(self) -> dict[str, str]:
        """The attributes of its resource."""
        return {
            "service.name": SERVICE,
            "service.version": self.release,
            "service.instance.id": _hex(f"instance {self.name}"),
            "k8s.pod.name": self.name,
            "host.name": f"gpu-{self.rank}",
        }

    def adds(
        self,
        at: float,
        seconds: float | None,
        layer: str,
        kernel: str,
        outcome: CompilationOutcome | None = None,
        *,
        spec: str,
        phase: str = "startup",
        stored: bool | None = None,
        reason: str | None = None,
        trace: str | None = None,
        parent: int | None = None,
        error: str | None = None,
        options: str = "",
    ) -> int:
        """Add a trip and return its number.

        Args:
            at: seconds after the start of the process.
            seconds: that it took, or None if it never ended.
            layer: of the runtime.
            kernel: that it is of.
            outcome: None unless it is a record.
            spec: types and shapes.
            phase: of the process.
            stored: whether the store took it; by default it does what was compiled.
            reason: why it was compiled again, as the runtime says.
            trace: of the request that it is a part of.
            parent: the trip that it runs in.
            error: the class of the exception that it failed with.
            options: that the artifact was made with and that its key leaves out.
        """
        seq = len(self.trips)
        runtime = layer.partition(".")[0]
        build = _NUMBA if runtime == "numba" else _BUILDS[self.release][runtime]
        target = "cpu:sapphirerapids" if runtime == "numba" else "cuda:90"
        code = hashlib.sha256(kernel.encode()).hexdigest()
        entry = hashlib.sha256(f"{kernel} {code} {spec} {build}".encode()).hexdigest()
        kind, location = _STORES[layer]
        started_ns = (
            round(self.started.timestamp()) * SECOND + round(at * 1000) * 10**6 + 17 * seq + self.rank
        )
        duration_ns = None if seconds is None else round(seconds * SECOND) + 101 * seq + self.rank
        attributes: dict[str, AttributeValue] = {
            semconv.RANK: self.rank,
            semconv.WORLD_SIZE: 2,
            semconv.PROCESS_PID: 7 + self.rank,
            semconv.THREAD_ID: 7 + self.rank,
            semconv.PHASE: phase,
            semconv.SPECIALIZATION: spec,
            semconv.TARGET: target,
            semconv.CODE_FUNCTION_NAME: kernel,
        }
        if outcome is not None:
            attributes |= {
                semconv.BUILD: build,
                semconv.DEVICE_LOADED: True,
                semconv.OUTCOME_FROM: "runtime",
                semconv.STORE_KIND: kind,
                semconv.STORE_LOCATION: location,
                semconv.STORE_ENTRY: entry,
                semconv.IDENTITY: _hex(f"{kernel}\n{code}\n{spec}\n{target}"),
                **_components(runtime, build, code, spec, options),
            }
        if outcome is COMPILED:
            attributes[semconv.STORE_STORED] = stored is not False
            if stored is False:
                attributes[semconv.STORE_REASON] = _READ_ONLY
            for stage, share in _STAGES[layer].items():
                attributes[semconv.STAGE + stage] = round((duration_ns or 0) * share)
        if reason is not None:
            attributes[semconv.REASON] = reason
        self.trips.append(
            Trip(
                session=self.session,
                seq=seq,
                parent_seq=parent,
                runtime=runtime,
                layer=layer,
                kernel=kernel,
                started_ns=started_ns,
                duration_ns=duration_ns,
                outcome=outcome,
                key=KernelCacheKey.of_texts(build=build, rest=entry) if outcome is not None else None,
                source=TextDigest.of(f"{kernel} for {spec}") if outcome is COMPILED else None,
                error_type=error,
                message=error,
                trace_id=self._trace(seq, parent, trace),
                span_id=_hex(f"span {self.name} {seq}")[:16],
                attributes=attributes,
            )
        )
        return seq

    def _trace(self, seq: int, parent: int | None, request: str | None) -> str:
        if parent is not None:
            return self.trips[parent].trace_id or ""
        return request or _hex(f"trace {self.name} {seq}")


def _hex(text: str) -> str:
    return hex128(digest128(text))


def _components(runtime: str, build: str, code: str, spec: str, options: str) -> Mapping[str, AttributeValue]:
    parts = {
        "torch": {"graph": code[:24], "inputs": spec, "torch_version": build},
        "triton": {"source": code, "signature": spec, "triton_key": build},
        "numba": {"source_digest": code, "signature": spec, "numba": build, "options": options or "OPT=3"},
    }
    return {semconv.KEY_COMPONENT + name: value for name, value in parts[runtime].items()}


MODEL: Final = ("torch.inductor.graph", "shop.model.Ranker.forward")
SCORE: Final = ("triton", "shop.kernels.score")
ORDER: Final = ("triton", "shop.kernels.order")
ATTENTION: Final = ("triton", "shop.kernels.attention")
TOTAL: Final = ("numba", "shop.pricing.total")
VAT: Final = ("numba", "shop.pricing.vat")
_FULL_BATCH: Final = "(x: *fp16, BLOCK=64) num_warps=4"
_FLOATS: Final = "(array(float64, 1d, C),)"


def _at(hour: int, minute: int) -> datetime:
    return datetime(2026, 11, 30, hour, minute, tzinfo=timezone.utc)


def _cold() -> Iterator[Process]:
    first, second = (Process("cold", rank, "1.4.0", _at(8, 0)) for rank in (0, 1))
    # The ranks need the same kernel at the same moment, and both compile it. What comes later one of them has.
    graph = first.adds(2, 130, *MODEL, COMPILED, spec="f16[64, 512]")
    first.adds(4, 8, *SCORE, COMPILED, spec=_FULL_BATCH, parent=graph)
    first.adds(14, 12, *ORDER, COMPILED, spec=_FULL_BATCH, parent=graph)
    second.adds(4.5, 9, *SCORE, COMPILED, spec=_FULL_BATCH)
    second.adds(30, 0.25, *ORDER, LOADED, spec=_FULL_BATCH)
    second.adds(133, 1.5, *MODEL, LOADED, spec="f16[64, 512]")
    for process in (first, second):
        process.adds(140, 1.25, *TOTAL, COMPILED, spec=_FLOATS, stored=False)
    first.adds(142, 0.75, *VAT, COMPILED, spec=_FLOATS)
    yield from (first, second)


def _again() -> Iterator[Process]:
    for rank in (0, 1):
        process = Process("again", rank, "1.4.0", _at(12, 0))
        graph = process.adds(2, 2, *MODEL, LOADED, spec="f16[64, 512]")
        process.adds(2.5, 0.5, *SCORE, LOADED, spec=_FULL_BATCH, parent=graph)
        process.adds(3.2, 0.5, *ORDER, LOADED, spec=_FULL_BATCH, parent=graph)
        # The store of Numba is in the image, which is read-only: every start compiles this again.
        process.adds(5, 1.25, *TOTAL, COMPILED, spec=_FLOATS, stored=False)
        # Made with OPT=3, loaded by a process that asks for OPT=0: Numba's key leaves it out.
        process.adds(7, 0.05, *VAT, LOADED, spec=_FLOATS, options="OPT=0" if rank == 1 else "")
        yield process


def _new_image() -> Iterator[Process]:
    first, second = (Process("new", rank, "1.5.0", _at(16, 0)) for rank in (0, 1))
    # Another Triton makes other keys, and all of its kernels are compiled once more.
    for process, score, order in ((first, COMPILED, LOADED), (second, LOADED, COMPILED)):
        process.adds(2, 2, *MODEL, LOADED, spec="f16[64, 512]")
        wait = 12 if score is LOADED else 0
        process.adds(5 + wait, 0.5 if score is LOADED else 10, *SCORE, score, spec=_FULL_BATCH)
        process.adds(5 + 25 - 2 * wait, 0.5 if order is LOADED else 14, *ORDER, order, spec=_FULL_BATCH)
        process.adds(40, 1.25, *TOTAL, COMPILED, spec=_FLOATS, stored=False)
    # It serves, and batches come that the warm-up has not tried.
    graph = first.adds(
        3600,
        31,
        *MODEL,
        COMPILED,
        spec="f16[7, 512]",
        phase="serving",
        reason="tensor 'x' size mismatch at index 0. expected 64, actual 7",
        trace=REQUEST_TRACE,
    )
    for at, batch, seconds, parent in ((3604, 7, 6, graph), (3633, 13, 5, None)):
        first.adds(
            at,
            seconds,
            *SCORE,
            COMPILED,
            spec=f"(x: *fp16, BLOCK={batch}) num_warps=4",
            phase="serving",
            trace=REQUEST_TRACE,
            parent=parent,
        )
    # The other rank has no context of the request and compiles for it all the same.
    second.adds(3632, 0.5, *SCORE, LOADED, spec="(x: *fp16, BLOCK=7) num_warps=4", phase="serving")
    first.adds(
        4000,
        0.5,
        *ATTENTION,
        spec="(q: *fp16, HEADS=48)",
        phase="serving",
        error="triton.compiler.errors.CompilationError",
    )
    second.adds(4000, None, *ATTENTION, spec="(q: *fp16, HEADS=64)", phase="serving")
    yield from (first, second)


def processes() -> list[Process]:
    """Return the processes of the fleet, those of each start together."""
    return [*_cold(), *_again(), *_new_image()]


def trips() -> str:
    """Return all trips, one JSON object a line, as `otel-kernel export --all` writes them."""
    return "".join(f"{json.dumps(trip.to_json())}\n" for process in processes() for trip in process.trips)
