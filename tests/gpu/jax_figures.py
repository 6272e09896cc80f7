"""Figures of JAX on the device at hand: first calls, cold and warm, and what a launch costs with us.

    python tests/gpu/jax_figures.py FOLDER

The folder takes a store, which must be empty. Prints one line for each workload and one for launches.
"""

# JAX's own types are half unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LAUNCHES = 2_000
ROUNDS = 12


def workloads() -> dict[str, tuple[Callable[..., Any], list[Any]]]:
    """Return functions of different make, with their arguments."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import pallas

    x = np.ones((512, 512), np.float32)
    image, filters = np.ones((8, 16, 64, 64), np.float32), np.ones((32, 16, 3, 3), np.float32)

    def pointwise(x: Any) -> Any:
        return jnp.tanh(x) * 2 + jnp.sin(x)

    def products(x: Any) -> Any:
        for _ in range(4):
            x = jax.nn.relu(x @ x)
        return x

    def loop(x: Any) -> Any:
        return jax.lax.scan(lambda carry, row: (carry * 0.5 + row, carry.sum()), x[0], x)

    def convolution(image: Any, filters: Any) -> Any:
        return jax.lax.conv(image, filters, (1, 1), "SAME")

    def kernel(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref[...] + 1

    def pallas_kernel(x: Any) -> Any:
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pallas.pallas_call(kernel, out_shape=shape, interpret=jax.default_backend() == "cpu")(x)

    return {
        "pointwise": (pointwise, [x]),
        "products": (products, [x]),
        "loop": (loop, [x]),
        "convolution": (convolution, [image, filters]),
        "pallas": (pallas_kernel, [x[:64, :64]]),
    }


def first_calls(store: str) -> None:
    """Call each workload twice in this process and print the times and the trips, as JSON."""
    import jax

    from otel_kernel import faults, pipeline, semconv
    from otel_kernel.instrumentors.jax import JaxInstrumentor
    from otel_kernel.records import Trip

    faults.reraise = True
    trips: list[Trip] = []

    class Kept:
        wants_start = False

        def started(self, trip: Trip) -> None:
            raise AssertionError("this sink wants no starts")

        def finished(self, trip: Trip) -> None:
            if semconv.INTERNAL not in trip.attributes:
                trips.append(trip)

    JaxInstrumentor().instrument()
    pipeline.add_sink(Kept())
    jax.config.update("jax_compilation_cache_dir", store)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    found: dict[str, Any] = {}
    for name, (function, arguments) in workloads().items():
        arguments = jax.device_put(arguments)
        jitted = jax.jit(function)
        trips.clear()
        times: list[float] = []
        for _ in range(2):
            started = time.perf_counter()
            jax.block_until_ready(jitted(*arguments))
            times.append((time.perf_counter() - started) * 1e3)
        found[name] = {"times": times, "trip": trips[0].to_json(), "trips": len(trips)}
    print(json.dumps(found))


def launches() -> None:
    """Time launches in turn with us and without us, in this process, and print the best of each, as JSON."""
    import jax
    import numpy as np

    from otel_kernel.instrumentors.jax import JaxInstrumentor

    instrumentor = JaxInstrumentor()
    instrumentor.instrument()
    jitted = jax.jit(lambda x: x + 1)
    x = jax.device_put(np.ones(8, np.float32))
    jax.block_until_ready(jitted(x))
    best = {"with": float("inf"), "without": float("inf")}
    calls = {"with": 0, "without": 0}
    for _ in range(ROUNDS):
        for name in ("with", "without"):
            if name == "without":
                instrumentor.uninstrument()
            calls[name] = _python_calls(lambda: jitted(x))
            started = time.perf_counter()
            for _ in range(LAUNCHES):
                jitted(x)
            jax.block_until_ready(jitted(x))
            best[name] = min(best[name], (time.perf_counter() - started) / LAUNCHES * 1e6)
        instrumentor.instrument()
    print(json.dumps({"best": best, "calls": calls}))


def _python_calls(call: Callable[[], object]) -> int:
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def _run(*arguments: str) -> Any:
    root = Path(__file__).parents[2]
    path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        env={**os.environ, "PYTHONPATH": path, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _line(when: str, name: str, seen: Any) -> str:
    trip, (first, second) = seen["trip"], seen["times"]
    attributes = trip["attributes"]
    stages = {
        each.rpartition(".")[2]: value / 1e6
        for each, value in attributes.items()
        if each.startswith("compute.kernel.stage.")
    }
    shown = " ".join(f"{each} {stages[each]:.1f}" for each in sorted(stages))
    line = (
        f"{name:12} {when:5} {trip['outcome']:8} first call {first:8.1f} ms, second {second:6.2f}; "
        f"trip {trip['duration_ns'] / 1e6:7.1f} ms ({shown}); {attributes['compute.kernel.target']} "
        f"{attributes['compute.kernel.device']} loaded={attributes['compute.kernel.device_loaded']} "
        f"{attributes.get('compute.kernel.artifact.size', 0)} B"
    )
    return f"{line}; {seen['trips']} trips" if seen["trips"] > 1 else line


def main(folder: Path) -> None:
    """Run everything in processes of their own and print the figures."""
    runs = {when: _run("first_calls", str(folder / "store")) for when in ("cold", "warm")}
    for name in runs["cold"]:
        for when, run in runs.items():
            print(_line(when, name, run[name]))
    found = _run("launches")
    best, calls = found["best"], found["calls"]
    print(
        f"launch: with {best['with']:.2f} us, without {best['without']:.2f} us, ratio "
        f"{best['with'] / best['without']:.3f}; Python calls with {calls['with']}, without {calls['without']}"
    )


if __name__ == "__main__":
    if sys.argv[1] == "first_calls":
        first_calls(sys.argv[2])
    elif sys.argv[1] == "launches":
        launches()
    else:
        main(Path(sys.argv[1]))
