"""The start of a process that imports no runtime, booted as `otel-kernel run` does it, and without us."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import otel_kernel
from benchmarks.harness import Line, Rounds, at_most, shown

_ROUNDS = 60


def _processor_seconds(environment: dict[str, str]) -> float:
    """Return the processor's time of an interpreter that does nothing."""
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", "pass"], environment)
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise RuntimeError(f"the interpreter ended with status {status}")
    return usage.ru_utime + usage.ru_stime


def lines() -> Iterator[Line]:
    """Measure both."""
    bare = {name: text for name, text in os.environ.items() if not name.startswith(("OTEL_", "PYTHON"))}
    folder = Path(otel_kernel.__file__).with_name("sitecustomize")
    booted = {**bare, "OTEL_KERNEL_BOOT": "1", "PYTHONPATH": str(folder)}
    rounds = Rounds(
        {"booted": lambda: _processor_seconds(booted), "bare": lambda: _processor_seconds(bare)}, _ROUNDS
    )
    yield at_most("start-up, booted less bare", 10, rounds.differences("booted", "bare"), " ms")
    yield shown("start-up, booted / bare", rounds.ratios("booted", "bare"))
