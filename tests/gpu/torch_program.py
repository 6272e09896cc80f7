"""A program that uses torch.compile on a GPU; tells its trips as one JSON line.

    python torch_program.py MODEL [awaited] [graph] [tuned] [launches] [bare]

MODEL is `base`, `train`, `broken` or `source`.
"""

# Torch and Triton are half typed.
# mypy: disable-error-code="untyped-decorator,misc"
# pyright: basic

from __future__ import annotations

import json
import os
import re
import sys
import time
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
import triton
import triton.language as tl
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_kernel import faults, pipeline
from otel_kernel.instrumentors.torch import TorchInstrumentor
from otel_kernel.instrumentors.triton import TritonInstrumentor
from otel_kernel.records import Trip

WORDS = sys.argv[1:]


@triton.jit
def user_scale(values, result, size, block: tl.constexpr):  # type: ignore[no-untyped-def]
    index = tl.program_id(0) * block + tl.arange(0, block)
    mask = index < size
    tl.store(result + index, tl.load(values + index, mask=mask) * 3, mask=mask)


@triton.jit
def user_broken(values, result, size, block: tl.constexpr):  # type: ignore[no-untyped-def]
    index = tl.arange(0, block)
    tl.store(result + index, tl.load(values + index) * no_such_name)  # type: ignore[name-defined] # noqa: F821


def launched(kernel: Any, x: Any) -> Any:
    result = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 256),)](x, result, x.numel(), block=256)
    return result


def base(x: Any, first: Any, second: Any) -> Any:
    hidden = F.gelu(F.layer_norm(x, (x.shape[-1],)) @ first) @ second
    column = F.softmax(hidden, dim=-1).sum(0)
    running = hidden.cumsum(-1)
    turned = (hidden.t() + 1).amax(0)
    return launched(user_scale, running), column, turned


def broken(x: Any) -> Any:
    return launched(user_broken, x.sin())


SOURCE = """
extern "C" __global__ void add_one(float* values, int size) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < size) values[index] += 1.0f;
}
"""


def from_source() -> Any:
    """Compile CUDA source twice, as nothing of it is kept, and once in vain."""
    values = torch.zeros(256, device="cuda")
    for _ in range(2):
        kernel = torch.cuda._compile_kernel(SOURCE, "add_one")
        kernel(grid=(1, 1, 1), block=(256, 1, 1), args=[values, 256])
    torch.cuda.synchronize()
    try:
        torch.cuda._compile_kernel("__global__ void wrong() { no_such_name; }", "wrong")
    except Exception as error:
        return [float(values.sum()), type(error).__name__]
    return "nothing raised"


class Sink:
    wants_start = False

    def __init__(self) -> None:
        self.trips: list[Trip] = []

    def started(self, trip: Trip) -> None:
        return

    def finished(self, trip: Trip) -> None:
        self.trips.append(trip)


def run() -> Any:
    options: dict[str, Any] = {}
    if "tuned" in WORDS:
        options["mode"] = "max-autotune-no-cudagraphs"
    if "graph" in WORDS:
        options["mode"] = "reduce-overhead"
    torch.manual_seed(0)
    device = "cuda"
    if WORDS[0] == "train":
        model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512)).to(
            device
        )
        compiled = torch.compile(model, **options)
        for rows in (64, 96):
            compiled(torch.randn(rows, 256, device=device)).sum().backward()
        return None
    if WORDS[0] == "source":
        return from_source()
    if WORDS[0] == "broken":
        compiled = torch.compile(broken, **options)
        try:
            compiled(torch.randn(256, device=device))
        except Exception as error:
            return type(error).__name__
        return "nothing raised"
    compiled = torch.compile(base, **options)
    inputs = [torch.randn(1024, 1024, device=device) for _ in range(3)]
    for _ in range(3):
        results = compiled(*inputs)
    torch.cuda.synchronize()
    if "launches" in WORDS:
        return launches(compiled, inputs)
    return float(results[0].abs().sum() > 0)


def launches(compiled: Any, inputs: Any) -> Any:
    """Return the Python calls of ten launches and the shortest mean time of one, in us."""
    calls = 0

    def note(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(note)
    for _ in range(10):
        compiled(*inputs)
    sys.setprofile(None)
    best = min(mean_of(compiled, inputs) for _ in range(12))
    return {"calls": calls, "us": round(best, 2)}


def mean_of(compiled: Any, inputs: Any, count: int = 200) -> float:
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(count):
        compiled(*inputs)
    return (time.perf_counter() - started) / count * 1e6


def main() -> None:
    sink, spans = Sink(), InMemorySpanExporter()
    if "bare" not in WORDS:
        faults.reraise = os.environ.get("FAULTS") == "raised"
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(spans))
        TorchInstrumentor().instrument(tracer_provider=provider, level="full")
        TritonInstrumentor().instrument()
        pipeline.add_sink(sink)
    if "awaited" in WORDS:
        from torch._inductor.async_compile import AsyncCompile

        AsyncCompile.warm_pool()
        AsyncCompile.wait_pool_ready()
    started = time.perf_counter()
    result = run()
    took = time.perf_counter() - started
    graphs = [trip for trip in sink.trips if trip.layer == "torch.inductor.graph" and trip.outcome]
    kernels = [
        name for trip in graphs for name in re.findall(r"async_compile\.triton\('([^']+)'", str(trip.source))
    ]
    print(
        "RESULT",
        json.dumps(
            {
                "result": result,
                "seconds": round(took, 2),
                "pid": os.getpid(),
                "kernels": kernels,
                "trips": [{**trip.to_json(), "ir": None, "source": None} for trip in sink.trips],
                "spans": [
                    {
                        "name": span.name,
                        "id": f"{span.get_span_context().span_id:016x}",  # type: ignore[union-attr] # pyright: ignore[reportOptionalMemberAccess] - a span that has ended has one
                        "parent": f"{span.parent.span_id:016x}" if span.parent else None,
                        "status": span.status.description,
                    }
                    for span in spans.get_finished_spans()
                ],
            }
        ),
    )


if __name__ == "__main__":
    main()
