"""Runs `torch_program.py` in every way a kernel of Inductor's comes to a GPU, and checks its trips.

    python torch_runs.py FOLDER [SECONDS]

For each run a line: kernels in the generated code, trips of kernels by outcome and by where they were
compiled. They must be equal, none twice, none of Triton's own beside them, and none from a worker, which is
booted as the program is. Runs that no longer fit into SECONDS are named as not run.
"""

from __future__ import annotations

import collections
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LAYER = "torch.inductor.triton_kernel"
KERNEL = "compute.kernel."


@dataclass(frozen=True)
class Way:
    """One way to a kernel."""

    name: str
    words: str
    """Of the program's command line."""
    store: str
    """Ways of one name share a store, in their order."""
    variables: dict[str, str] = field(default_factory=dict[str, str])
    wipe: tuple[str, ...] = ()
    """Folders of the store to remove before."""
    only: frozenset[str] = frozenset()
    """Outcomes that there may be; any where none is named."""
    where: str = ""
    """Where all kernels were compiled; anywhere if empty."""


ONE = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
STATIC_OFF = {"TORCHINDUCTOR_USE_STATIC_TRITON_LAUNCHER": "0", "TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER": "0"}
GRAPHS = ("fxgraph", "aotautograd")
COMPILED, LOADED = frozenset({"compiled"}), frozenset({"loaded"})

WAYS = (
    Way("base, cold", "base", "a", only=COMPILED, where="parent"),
    Way("base, warm", "base", "a"),
    Way("base, warm, third process", "base", "a", only=LOADED),
    Way("base, warm, pool awaited", "base awaited", "a", only=LOADED),
    Way("base, warm, Triton's store wiped", "base", "a", wipe=("triton",)),
    Way("base, stores of graphs wiped", "base", "a", wipe=GRAPHS, only=LOADED),
    Way("base, cold, pool awaited", "base awaited", "b", only=COMPILED, where="worker"),
    Way("base, warm after workers", "base", "b"),
    Way("base, stores of graphs wiped, pool awaited", "base awaited", "b", wipe=GRAPHS, only=LOADED),
    Way("one thread, cold", "base", "c", ONE, only=COMPILED, where="parent"),
    Way("one thread, warm", "base", "c", ONE),
    Way("one thread, Triton's store wiped", "base", "c", ONE, wipe=("triton",)),
    Way("one thread, stores of graphs wiped", "base", "c", ONE, wipe=GRAPHS),
    Way("static launcher off, cold", "base", "d", STATIC_OFF, only=COMPILED),
    Way("static launcher off, warm", "base", "d", STATIC_OFF),
    Way(
        "static launcher off, wiped, pool awaited",
        "base awaited",
        "d",
        STATIC_OFF,
        wipe=("triton",),
        only=LOADED,
    ),
    Way("training, cold, pool awaited", "train awaited", "e", only=COMPILED),
    Way("training, warm", "train", "e", only=LOADED),
    Way("reduce-overhead, cold", "base graph", "f", only=COMPILED),
    Way("reduce-overhead, warm", "base graph", "f"),
    Way("caches disabled", "base", "g", {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}, only=COMPILED),
    Way("caches disabled, again", "base", "g", {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}, only=COMPILED),
    Way("workers forked", "base awaited", "h", {"TORCHINDUCTOR_WORKER_START": "fork"}, only=COMPILED),
    Way("workers spawned", "base awaited", "i", {"TORCHINDUCTOR_WORKER_START": "spawn"}, only=COMPILED),
    Way("max-autotune, cold, pool awaited", "base tuned awaited", "j"),
    Way("max-autotune, warm", "base tuned", "j"),
    Way("max-autotune, one thread, cold", "base tuned", "k", ONE),
)


def start(folder: Path, way: Way) -> tuple[dict[str, Any] | None, str, Path]:
    """Run a way and return what it reported, what it said, and its recording."""
    store = folder / f"store-{way.store}"
    store.mkdir(exist_ok=True)
    for name in way.wipe:
        shutil.rmtree(store / name, ignore_errors=True)
    recording = folder / f"{way.name.replace(' ', '_').replace(',', '').replace(chr(39), '')}.db"
    paths = (str(ROOT / "otel_kernel" / "sitecustomize"), os.environ.get("PYTHONPATH", str(ROOT)))
    environment = {
        **{
            name: text
            for name, text in os.environ.items()
            if not name.startswith(("TRITON_", "TORCHINDUCTOR_"))
        },
        "TORCHINDUCTOR_CACHE_DIR": str(store),
        "PYTHONPATH": os.pathsep.join(paths),
        "OTEL_KERNEL_BOOT": "1",
        "OTEL_KERNEL_RECORDING": str(recording),
        **way.variables,
    }
    done = subprocess.run(
        [sys.executable, str(HERE / "torch_program.py"), *way.words.split()],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    report: dict[str, Any] | None = json.loads(lines[-1].removeprefix("RESULT ")) if lines else None
    return report, done.stderr, recording


def check(way: Way, report: dict[str, Any], said: str, recording: Path) -> list[str]:
    """Return what is wrong with a run."""
    wrong: list[str] = []
    trips = [trip for trip in report["trips"] if trip["layer"] == LAYER and trip["outcome"]]
    found, wanted = len(trips), len(report["kernels"])
    if found != wanted:
        names = collections.Counter(trip["kernel"] for trip in trips)
        wrong.append(
            f"{found} trips for {wanted} kernels; code {sorted(report['kernels'])}; trips {dict(names)}"
        )
    if way.only and {trip["outcome"] for trip in trips} - way.only:
        wrong.append(f"outcomes {dict(collections.Counter(trip['outcome'] for trip in trips))}")
    where = {trip["attributes"].get(f"{KERNEL}key.component.compiled_in") for trip in trips}
    if way.where and where != {way.where}:
        wrong.append(f"compiled in {sorted(map(str, where))}, not in {way.where}")
    unloaded = [trip["kernel"] for trip in trips if not trip["attributes"].get(f"{KERNEL}device_loaded")]
    if unloaded:
        wrong.append(f"not loaded: {unloaded}")
    keyless = [trip["kernel"] for trip in trips if trip["key"] is None]
    if keyless:
        wrong.append(f"without key: {keyless}")
    inside = [
        trip for trip in report["trips"] if trip["layer"] == "triton" and trip["parent_seq"] is not None
    ]
    if inside and "tuned" not in way.words:
        wrong.append(f"{len(inside)} trips of Triton's own inside others")
    strangers = pids_of(recording) - {report["pid"]}
    if strangers:
        wrong.append(f"{len(strangers)} other processes recorded trips")
    if "otel-kernel" in said:
        wrong.append(next(line for line in said.splitlines() if "otel-kernel" in line)[:300])
    return wrong


def pids_of(recording: Path) -> set[int]:
    """Return the processes whose trips are in a recording."""
    if not recording.exists():
        return set()
    with sqlite3.connect(recording) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(sessions)")]
        if "pid" not in names:
            return set()
        return {row[0] for row in connection.execute("SELECT DISTINCT pid FROM sessions")}


def line_of(way: Way, report: dict[str, Any]) -> str:
    """Return one line on a run."""
    trips = [trip for trip in report["trips"] if trip["layer"] == LAYER]
    counted = collections.Counter(
        f"{trip['outcome']} in {trip['attributes'].get(KERNEL + 'key.component.compiled_in')}"
        for trip in trips
        if trip["outcome"]
    )
    given_up = collections.Counter(
        trip["abandoned"] or trip["error_type"] for trip in trips if not trip["outcome"]
    )
    own = sum(trip["layer"] == "triton" for trip in report["trips"])
    return (
        f"{way.name:44s} {len(report['kernels']):3d} kernels; {dict(counted)}; given up {dict(given_up)}; "
        f"Triton's own {own}; first call {report['seconds']} s"
    )


def main() -> int:
    """Run all ways and the four questions after them, and return the exit code."""
    folder = Path(sys.argv[1])
    until = time.monotonic() + float(sys.argv[2] if len(sys.argv) > 2 else 480)
    failed = 0
    reports: dict[str, dict[str, Any]] = {}
    for way in WAYS:
        if time.monotonic() > until:
            print(f"{way.name:44s} not run, for want of time")
            continue
        try:
            report, said, recording = start(folder, way)
        except subprocess.TimeoutExpired:
            report, said, recording = None, "took longer than 170 s", folder / "none.db"
        if report is None:
            failed += 1
            print(f"{way.name:44s} FAILED: {said[-600:]}")
            continue
        reports[way.name] = report
        wrong = check(way, report, said, recording)
        failed += bool(wrong)
        print(line_of(way, report), *(f"\n    WRONG: {each}" for each in wrong), flush=True)
    failed += worker_failure(folder)
    compare_keys(reports)
    failed += launch_cost(folder)
    print(f"{failed} wrong")
    return 1 if failed else 0


def worker_failure(folder: Path) -> int:
    """Let a kernel fail in a worker."""
    report, said, _ = start(folder, Way("a kernel that fails in a worker", "broken awaited", "l"))
    if report is None:
        print("a kernel that fails in a worker: FAILED", said[-600:])
        return 1
    ends = [
        (trip["layer"], trip["kernel"], trip["state"], trip["error_type"], trip["message"])
        for trip in report["trips"]
    ]
    print("a kernel that fails in a worker:", report["result"], *ends, sep="\n    ")
    right = any(layer == "torch.inductor.graph" and state == "failed" for layer, _, state, _, _ in ends)
    return 0 if right else 1


def compare_keys(reports: dict[str, dict[str, Any]]) -> None:
    """Show the keys of one kernel that was compiled in the parent and in a worker."""
    names = ("base, cold", "base, cold, pool awaited")
    if not all(name in reports for name in names):
        return
    print("one kernel, compiled in the parent and in a worker:")
    by_name: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        for trip in reports[name]["trips"]:
            if trip["layer"] == LAYER and trip["outcome"]:
                by_name.setdefault(trip["kernel"], []).append(trip)
    for kernel, trips in sorted(by_name.items())[:2]:
        for trip in trips:
            parts = {
                name.rpartition(".")[2]: value
                for name, value in trip["attributes"].items()
                if ".key.component." in name
            }
            print("   ", kernel, trip["attributes"].get(f"{KERNEL}store.entry"), parts)


def launch_cost(folder: Path) -> int:
    """Compare launches with us and without."""
    with_us, said, _ = start(folder, Way("launches with us", "base launches", "m"))
    shutil.rmtree(folder / "store-m", ignore_errors=True)
    bare = Way("launches without us", "base launches bare", "m", {"OTEL_KERNEL_BOOT": "0"})
    without, said_bare, _ = start(folder, bare)
    if with_us is None or without is None:
        print("launches: FAILED", (said or said_bare)[-600:])
        return 1
    print("launches with us:", with_us["result"], "without:", without["result"])
    return 0 if with_us["result"]["calls"] == without["result"]["calls"] else 1


if __name__ == "__main__":
    sys.exit(main())
