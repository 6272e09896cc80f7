"""The runtimes: installed, supported, instrumented, and whether their stores can be written."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from otel_kernel.doctor.children import python
from otel_kernel.doctor.findings import Area, Fact, Finding, State
from otel_kernel.doctor.places import can_be_written
from otel_kernel.doctor.probe import MARK
from otel_kernel.report.words import count

_PATIENCE: Final = 300.0
"""Seconds that a runtime may take to be imported."""


class _ProbeError(Exception):
    """Says why a runtime cannot be looked at."""


def look(names: Iterable[str]) -> Iterator[Finding]:
    """Yield a finding for each runtime, then one for the store of each that is installed.

    A runtime that is not installed costs nothing.
    """
    stores: list[Finding] = []
    for name in names:
        if not _is_installed(name):
            yield Finding(Area.RUNTIME, name, State.ABSENT, "not installed")
            continue
        try:
            told = _probe(name)
        except _ProbeError as error:
            advice = f"make `import {name}` work first"
            yield Finding(Area.RUNTIME, name, State.ATTENTION, f"cannot be imported: {error}", advice)
            continue
        yield _runtime(name, told)
        if told["store"] is not None:
            stores.append(_store(name, **told["store"]))
    yield from stores


def _is_installed(name: str) -> bool:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None  # else it is some folder of that name


def _probe(name: str) -> dict[str, Any]:
    """Return what `probe.told` returns in a process of its own, or raise `_ProbeError`."""
    try:
        done = python("-m", "otel_kernel.doctor.probe", name, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        raise _ProbeError(f"it takes more than {_PATIENCE:.0f} s") from None
    if done.returncode:
        raise _ProbeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    # A runtime may print something too, also at its end.
    told: dict[str, Any] = json.loads(
        next(line for line in done.stdout.splitlines() if line.startswith(MARK))[len(MARK) :]
    )
    return told


def _runtime(name: str, told: dict[str, Any]) -> Finding:
    facts = {fact: told[fact] for fact in ("version", "requires", "patched", "missing")}
    text = f"version {told['version'] or 'unknown'}, {count(told['patched'], 'point')} patched"
    if told["missing"]:
        text += f", {len(told['missing'])} not in this version ({', '.join(told['missing'])})"
    said = "; ".join(told["said"])
    if not told["patched"]:
        advice = f'install a supported version, pip install "{told["requires"]}", or update otel-kernel'
        return Finding(Area.RUNTIME, name, State.ATTENTION, said or text, advice, facts)
    if said:
        return Finding(Area.RUNTIME, name, State.NOTE, f"{text}; {said}", None, facts)
    return Finding(Area.RUNTIME, name, State.WELL, text, None, facts)


def _store(name: str, folder: str | None, setting: str, is_off: bool) -> Finding:
    facts: dict[str, Fact] = {"folder": folder, "setting": setting, "writable": None}
    if is_off:
        advice = "name a folder by it, unless the program does: else every process compiles anew"
        return Finding(Area.STORE, name, State.NOTE, f"it is off, {setting}", advice, facts)
    if folder is None:
        return Finding(Area.STORE, name, State.WELL, setting, None, facts)
    path = Path(folder).absolute()
    text = f"{folder} ({setting})"
    facts["writable"] = can_be_written(path)
    if not facts["writable"]:
        advice = "make it writable for this user, or name another folder"
        return Finding(Area.STORE, name, State.ATTENTION, f"cannot be written: {text}", advice, facts)
    if not path.exists():
        text += ", made when it is needed"
    return Finding(Area.STORE, name, State.WELL, text, None, facts)
