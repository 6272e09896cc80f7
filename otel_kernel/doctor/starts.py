"""The start of a process: whether otel-kernel boots in this interpreter, and what that costs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Final

from otel_kernel import boot
from otel_kernel.doctor.children import python
from otel_kernel.doctor.findings import Area, Finding, State

_PATIENCE: Final = 60.0
"""Seconds that one start may take."""

_STARTS: Final = 9
"""Of each kind, of which the median counts."""

_HAS_BOOTED: Final = "import sys; print(getattr(sys.modules.get('otel_kernel.boot'), '_started', False))"

_BOOT: Final = {boot.BOOT_VARIABLE: "1"}

_SITECUSTOMIZE: Final = str(Path(boot.__file__).parent / "sitecustomize")


def look() -> Iterator[Finding]:
    """Yield a finding for each: whether it boots, and the cost."""
    by_path = {
        **_BOOT,
        "PYTHONPATH": os.pathsep.join(filter(None, (_SITECUSTOMIZE, os.environ.get("PYTHONPATH")))),
    }
    pth, sitecustomize = _has_booted(_BOOT), _has_booted(by_path)
    facts = {"pth": pth, "sitecustomize": sitecustomize}
    advice = f"install otel-kernel for this interpreter: {sys.executable} -m pip install otel-kernel"
    if pth:
        text = "otel_kernel.pth boots every process that has our variables"
        yield Finding(Area.START, "boot", State.WELL, text, None, facts)
    elif sitecustomize:
        text = "no otel_kernel.pth in site-packages: a process boots only where PYTHONPATH reaches it"
        yield Finding(Area.START, "boot", State.NOTE, text, advice, facts)
    else:
        text = "nothing boots in this interpreter, so `otel-kernel run` records nothing"
        yield Finding(Area.START, "boot", State.ATTENTION, text, advice, facts)
        return
    yield _cost(_BOOT if pth else by_path)


def _has_booted(variables: Mapping[str, str]) -> bool:
    return python("-c", _HAS_BOOTED, changes=variables, timeout=_PATIENCE).stdout.strip() == "True"


def _cost(variables: Mapping[str, str]) -> Finding:
    bare: list[int] = []
    booted: list[int] = []
    for _ in range(_STARTS):  # in turns, so that both meet the same load
        bare.append(_start_ns({}))
        booted.append(_start_ns(variables))
    facts = {"bare_ns": round(median(bare)), "booted_ns": round(median(booted))}
    more = (facts["booted_ns"] - facts["bare_ns"]) / 1e6
    text = f"{more:+.1f} ms on {facts['bare_ns'] / 1e6:.1f} ms, no runtime imported (median of {_STARTS})"
    return Finding(Area.START, "cost", State.WELL, text, None, facts)


def _start_ns(variables: Mapping[str, str]) -> int:
    before = time.perf_counter_ns()
    python("-c", "pass", changes=variables, timeout=_PATIENCE)
    return time.perf_counter_ns() - before
