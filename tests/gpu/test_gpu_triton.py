"""Triton on a GPU: what differs from the device that is not there, on which all the rest is tested."""

# Triton and PyTorch have no types that say enough.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import StatusCode
from telemetry import Telemetry

from otel_kernel import pipeline, semconv
from otel_kernel.records import Abandoned, CompilationOutcome

if os.environ.get("TRITON_TEST_DEVICE") != "cuda":
    pytest.skip("TRITON_TEST_DEVICE does not ask for a GPU", allow_module_level=True)

torch: Any = import_module("torch")
triton: Any = import_module("triton")
kernels: Any = import_module("triton_kernels")


@pytest.fixture(autouse=True)
def _instrumented(telemetry: Telemetry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Instrument Triton at level full, with an empty memory and an empty store."""
    from otel_kernel.instrumentors.triton import TritonInstrumentor

    import_module("triton_device")  # prepares the driver with the store that the process has
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "store"))
    for kernel in (kernels.scale, kernels.greedy, kernels.tuned.fn):
        kernel.device_caches.clear()
    pipeline.configure(level="full")
    TritonInstrumentor().instrument()
    yield
    TritonInstrumentor().uninstrument()


def ones(size: int) -> Any:
    return torch.ones(size, device="cuda")


def test_a_launch_computes_what_it_should_and_is_one_trip_with_its_load(telemetry: Telemetry) -> None:
    values = ones(64)
    for _ in range(2):
        kernels.scale[(1,)](values, size=64)

    (trip,) = telemetry.trips
    major, minor = torch.cuda.get_device_capability()
    assert 64 * 9 == float(values.sum())
    assert CompilationOutcome.COMPILED is trip.outcome
    assert (True, "cuda:0", f"cuda:{major}{minor}") == tuple(
        trip.attributes[name] for name in (semconv.DEVICE_LOADED, semconv.DEVICE, semconv.TARGET)
    )
    load = trip.attributes[semconv.STAGE + "load"]
    assert isinstance(load, int)
    assert 0 < load < (trip.duration_ns or 0)
    assert ".entry scale" in str(trip.source)


def test_a_kernel_that_asks_for_too_much_fails_its_trip(telemetry: Telemetry) -> None:
    values = ones(64 * 512)
    for _ in range(2):
        with pytest.raises(Exception, match="out of resource: shared memory"):
            kernels.greedy[(1,)](values, ones(512 * 128), values, depth=512, num_warps=8)

    (trip,) = telemetry.trips
    failed, again = telemetry.spans
    assert "triton.runtime.errors.OutOfResources" == trip.error_type
    assert ("compile triton_kernels.greedy", "load triton_kernels.greedy") == (failed.name, again.name)
    assert {StatusCode.ERROR} == {failed.status.status_code, again.status.status_code}
    assert [failed.context] == [link.context for link in again.links]


def test_a_round_of_tuning_measures_on_the_device(telemetry: Telemetry) -> None:
    values = ones(128)
    kernels.tuned[(1,)](values)
    kernels.tuned.cache.clear()

    assert ["compile", "compile", "compile", "tune"] == [
        span.name.partition(" ")[0] for span in telemetry.spans
    ]
    assert [None, None, Abandoned.TUNING] == [trip.abandoned for trip in telemetry.trips]
    assert 2.0 == float(values[0])


def test_a_captured_launch_is_replayed_without_us(telemetry: Telemetry) -> None:
    values = ones(64)
    kernels.scale[(1,)](values, size=64)
    before = len(telemetry.spans)
    graph = torch.cuda.CUDAGraph()
    values.fill_(1)
    with torch.cuda.graph(graph):
        kernels.scale[(1,)](values, size=64)
    for _ in range(2):
        graph.replay()
    torch.cuda.synchronize()

    assert before == len(telemetry.spans)
    assert 64 * 9 == float(values.sum())


def test_a_warmed_up_kernel_is_loaded_by_a_span_of_its_own(telemetry: Telemetry) -> None:
    values = ones(64)
    kernels.scale.warmup(values, size=64, grid=(1,))
    kernels.scale[(1,)](values, size=64)

    assert ["compile triton_kernels.scale", "load triton_kernels.scale"] == [
        span.name for span in telemetry.spans
    ]
    assert 64 * 3 == float(values.sum())


def test_two_streams_are_one_kernel(telemetry: Telemetry) -> None:
    values = ones(64)
    for _ in range(2):
        with torch.cuda.stream(torch.cuda.Stream()):
            kernels.scale[(1,)](values, size=64)
    torch.cuda.synchronize()

    assert 1 == len(telemetry.trips)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_two_gpus_compile_once_and_load_once(telemetry: Telemetry) -> None:
    for index in range(2):
        with torch.cuda.device(index):
            kernels.scale[(1,)](torch.ones(64, device=f"cuda:{index}"), size=64)

    assert [("compiled", "cuda:0"), ("loaded", "cuda:1")] == [
        (trip.outcome.value if trip.outcome else None, trip.attributes[semconv.DEVICE])
        for trip in telemetry.trips
    ]
