"""A step of a compiled transformer block, and a model of many graphs, with us and without us.

The store is warm: what is measured is loading, where a trip weighs most beside the work that it stands for.
Each figure is of a process of its own.
"""

# Torch is half typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from benchmarks.harness import Line, Rounds, shown, within_noise

_ROUNDS = 5
_GRAPHS = 200
_STEPS = 300
_ROOT = Path(__file__).parents[2]


def lines() -> Iterator[Line]:
    """Measure."""
    with tempfile.TemporaryDirectory() as store:
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": store,
            "PYTHONPATH": os.pathsep.join(map(str, (_ROOT, _ROOT / "tests", _ROOT / "examples"))),
        }
        for work, name in (
            ("first", "first step of a transformer block, warm store, with / without"),
            ("steady", "steady step of a transformer block, with / without"),
            ("graphs", f"{_GRAPHS} graphs, warm store, with / without"),
        ):
            run = partial(_seconds_of, work, environment=environment)
            run("without")  # fills the store
            rounds = Rounds(
                {
                    "with": partial(run, "with"),
                    "without": partial(run, "without"),
                    "without again": partial(run, "without"),
                },
                _ROUNDS,
            )
            ratios = rounds.ratios("with", "without")
            if work == "steady":
                yield within_noise(name, ratios, rounds.ratios("without again", "without"))
            else:
                yield shown(name, ratios)


def _seconds_of(work: str, which: str, *, environment: dict[str, str]) -> float:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.torch_steps", work, which],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.splitlines()[-1])


def _first() -> float:
    return _timed(_training(), 1)


def _steady() -> float:
    step = _training()
    for _ in range(3):
        step()
    return _timed(step, _STEPS)


def _training() -> Callable[[], object]:
    import torch
    from torch_training import WIDTH, Block

    compiled: Any = torch.compile(Block())
    batch = torch.ones(2, 12, WIDTH)

    def step() -> None:
        compiled(batch).sum().backward()

    return step


def _graphs() -> float:
    """Load graphs that are one product each, so that no compiler of C++ has a part in it."""
    import torch

    functions: list[Any] = []
    for n in range(_GRAPHS):
        names: dict[str, Any] = {}
        exec(f"def layer_{n}(x):\n    return x @ x", names)
        functions.append(torch.compile(names[f"layer_{n}"], dynamic=False))
    inputs = [torch.ones(n + 2, n + 2) for n in range(_GRAPHS)]

    def load() -> None:
        for function, x in zip(functions, inputs, strict=True):
            function(x)

    return _timed(load, 1)


def _timed(call: Callable[[], object], calls: int) -> float:
    started = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - started) / calls


def _child() -> None:
    work, which = sys.argv[1:]
    if which == "with":
        from otel_kernel.instrumentors.torch import TorchInstrumentor

        TorchInstrumentor().instrument(
            tracer_provider=TracerProvider(shutdown_on_exit=False),
            meter_provider=MeterProvider(shutdown_on_exit=False),
        )
    print({"first": _first, "steady": _steady, "graphs": _graphs}[work]())


if __name__ == "__main__":
    _child()
