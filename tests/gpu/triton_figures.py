"""Figures of Triton on the device at hand: first calls cold and warm, launches, a capture; with us and without.

    python tests/gpu/triton_figures.py FOLDER

The folder takes the stores, which must be empty. Prints one line for each figure.
"""

# Triton and PyTorch have no types that say enough.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median, quantiles
from typing import Any

LAUNCHES = 2_000
ROUNDS = 50
TESTS = Path(__file__).parents[1]


def instrument() -> list[Any]:
    """Instrument Triton with an SDK, and return the list that takes the trips."""
    from opentelemetry.sdk.trace import TracerProvider
    from telemetry import CollectingSink

    from otel_kernel import pipeline
    from otel_kernel.instrumentors.triton import TritonInstrumentor

    sink = CollectingSink()
    TritonInstrumentor().instrument(tracer_provider=TracerProvider(shutdown_on_exit=False))
    pipeline.add_sink(sink)
    return sink.trips


def ready() -> tuple[Any, Any]:
    """Return PyTorch and the kernels, with the device in use."""
    torch: Any = import_module("torch")
    torch.ones(1, device="cuda")
    return torch, import_module("triton_kernels")


def first_calls(torch: Any, kernels: Any, trips: list[Any]) -> dict[str, Any]:
    """Time the first call of two kernels, one after the other."""
    values = torch.ones(64, device="cuda")
    torch.cuda.synchronize()
    calls: dict[str, Callable[[], object]] = {
        "first": lambda: kernels.scale[(1,)](values, size=64),
        "second": lambda: kernels.shift[(1,)](values, 0.5, size=64),
    }
    told: dict[str, Any] = {}
    for name, call in calls.items():
        started = time.perf_counter()
        call()
        torch.cuda.synchronize()
        told[name] = {"call_ms": (time.perf_counter() - started) * 1e3}
    for name, trip in zip(told, trips, strict=False):
        stages = {
            stage.rpartition(".")[2]: nanoseconds / 1e6
            for stage, nanoseconds in trip.attributes.items()
            if stage.startswith("compute.kernel.stage.")
        }
        told[name] |= {
            "outcome": trip.outcome.value,
            "trip_ms": trip.duration_ns / 1e6,
            "key_ms": stages.get("key", 0.0),
            "load_ms": stages.get("load", 0.0),
        }
    return told


def launches(torch: Any, kernels: Any, _trips: list[Any]) -> dict[str, Any]:
    """Time launches of kernels that are in memory, in turns with us and without; us of each round."""
    from opentelemetry.sdk.trace import TracerProvider

    from otel_kernel.instrumentors.triton import TritonInstrumentor

    triton: Any = import_module("triton")
    provider = TracerProvider(shutdown_on_exit=False)
    values = torch.ones(64, device="cuda")
    told: dict[str, list[float]] = {"without": [], "with us": [], "without again": []}
    for _ in range(ROUNDS):
        for word, taken in told.items():
            if word == "with us":
                TritonInstrumentor().instrument(tracer_provider=provider)
            launch = triton.jit(kernels.scale.fn)[(1,)]
            launch(values, size=64)
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(LAUNCHES):
                launch(values, size=64)
            taken.append((time.perf_counter() - started) / LAUNCHES * 1e6)
            torch.cuda.synchronize()
            if word == "with us":
                TritonInstrumentor().uninstrument()
    return told


def capture(torch: Any, kernels: Any, trips: list[Any]) -> dict[str, Any]:
    """Let the first call of a kernel, with compile and load, fall into the capture of a graph."""
    values = torch.ones(64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            kernels.scale[(1,)](values, size=64)
        values.fill_(1)
        graph.replay()
        torch.cuda.synchronize()
        return {"sum": float(values.sum()), "trips": [trip.state for trip in trips]}
    except Exception as error:
        return {"raised": type(error).__name__, "trips": [trip.state for trip in trips]}


PARTS = {part.__name__: part for part in (first_calls, launches, capture)}


def run(part: str, store: Path, *, with_us: bool) -> dict[str, Any]:
    """Run a part in a process of its own and return what it told."""
    done = subprocess.run(
        [sys.executable, __file__, part, "with" if with_us else "without"],
        env={
            **os.environ,
            "TRITON_CACHE_DIR": str(store),
            "PYTHONPATH": os.pathsep.join((str(TESTS), os.environ.get("PYTHONPATH", ""))),
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def main(folder: Path) -> None:
    """Print all figures."""
    for with_us in (False, True):
        word = "with us" if with_us else "without"
        store = folder / word.replace(" ", "-")
        for state in ("cold", "warm"):
            for name, told in run("first_calls", store, with_us=with_us).items():
                trip = ""
                if with_us:
                    trip = (
                        f" = {told['outcome']} trip {told['trip_ms']:.1f} ms"
                        f" (key {told['key_ms']:.1f}, load {told['load_ms']:.1f})"
                    )
                print(f"{state} {name} kernel, {word}: call {told['call_ms']:.1f} ms{trip}")
    rounds = run("launches", folder / "launches", with_us=False)
    print(
        f"launch without us: least {min(rounds['without']):.2f} us, median {median(rounds['without']):.2f} us"
    )
    for word in ("with us", "without again"):
        ratios = [one / other for one, other in zip(rounds[word], rounds["without"], strict=True)]
        low, middle, high = quantiles(ratios, n=4)
        print(
            f"launch {word}, ratio to without: {middle:.3f} ({low:.3f} to {high:.3f}),"
            f" {ROUNDS} rounds of {LAUNCHES} launches in turns"
        )
    for with_us in (False, True):
        told = run("capture", folder / f"capture-{with_us}", with_us=with_us)
        print(f"first call inside a capture, {'with us' if with_us else 'without'}: {json.dumps(told)}")


if __name__ == "__main__":
    if sys.argv[1] in PARTS:
        taken = instrument() if sys.argv[2] == "with" else []
        print(json.dumps(PARTS[sys.argv[1]](*ready(), taken)))
    else:
        main(Path(sys.argv[1]))
