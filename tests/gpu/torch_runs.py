"""Runs `torch_program.py` in every way a kernel of Inductor's comes to a GPU, and checks its trips.

    python torch_runs.py FOLDER [SECONDS [ROUTE ...]]

For each run a line: kernels in the generated code, trips of kernels by outcome and by where they were
compiled. They must be equal, none twice, none of Triton's own beside them, and none from a worker, which is
booted as the program is. Ways that share a store run one after another, and several stores at a time. Runs that
no longer fit into SECONDS are named as not run. With routes, letters of stores, only these are run.
"""

from __future__ import annotations

import collections
import json
import os
import shutil
import site
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LAYER = "torch.inductor.triton_kernel"
KERNEL = "compute.kernel."
AT_ONCE = 6
LONGEST = 200
"""Seconds that a run may take."""


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
    made_in: str = ""
    """Where all keys were made; anywhere if empty."""
    is_booted: bool = True
    """Whether otel-kernel boots by itself, so that it is in the workers too."""
    trips: int | None = None
    """How many kernels are told of; as many as there are in the generated code where this is None."""


ONE = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
STATIC_OFF = {"TORCHINDUCTOR_USE_STATIC_TRITON_LAUNCHER": "0", "TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER": "0"}
NO_CACHES = {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
CPP = {"TORCHINDUCTOR_CPP_WRAPPER": "1"}
GRAPHS = ("fxgraph", "aotautograd")
COMPILED, LOADED = frozenset({"compiled"}), frozenset({"loaded"})

WAYS = (
    Way("base, cold", "base", "a", only=COMPILED, made_in="parent"),
    Way("base, warm", "base", "a"),
    Way("base, warm, third process", "base", "a", only=LOADED),
    Way("base, warm, pool awaited", "base awaited", "a", only=LOADED),
    Way("base, warm, Triton's store wiped", "base", "a", wipe=("triton",)),
    Way("base, stores of graphs wiped", "base", "a", wipe=GRAPHS, only=LOADED),
    Way("base, cold, pool awaited", "base awaited", "b", only=COMPILED, made_in="worker"),
    Way("base, warm after workers", "base", "b"),
    Way("base, stores of graphs wiped, pool awaited", "base awaited", "b", wipe=GRAPHS, only=LOADED),
    Way("one thread, cold", "base", "c", ONE, only=COMPILED, made_in="parent"),
    Way("one thread, warm", "base", "c", ONE),
    Way("one thread, Triton's store wiped", "base", "c", ONE, wipe=("triton",)),
    Way("one thread, stores of graphs wiped", "base", "c", ONE, wipe=GRAPHS),
    Way("static launcher off, cold", "base", "d", STATIC_OFF, only=COMPILED),
    Way("static launcher off, warm", "base", "d", STATIC_OFF, only=COMPILED),  # under other keys
    Way("static launcher off, third process", "base", "d", STATIC_OFF, only=LOADED),
    Way("static launcher off, cold, pool awaited", "base awaited", "t", STATIC_OFF, only=COMPILED),
    Way("static launcher off, wiped, pool awaited", "base awaited", "t", STATIC_OFF, ("triton",), LOADED),
    Way("training, cold, pool awaited", "train awaited", "e", only=COMPILED),
    Way("training, warm", "train", "e", only=LOADED),
    Way("reduce-overhead, cold", "base graph", "f", only=COMPILED),
    Way("reduce-overhead, warm", "base graph", "f"),
    Way("caches disabled", "base", "g", NO_CACHES, only=COMPILED),
    Way("caches disabled, again", "base", "g", NO_CACHES, only=COMPILED),
    Way("workers forked", "base awaited", "h", {"TORCHINDUCTOR_WORKER_START": "fork"}, only=COMPILED),
    Way("workers spawned", "base awaited", "i", {"TORCHINDUCTOR_WORKER_START": "spawn"}, only=COMPILED),
    Way("max-autotune, cold, pool awaited", "base tuned awaited", "j"),
    Way("max-autotune, warm", "base tuned", "j"),
    Way("max-autotune, one thread, cold", "base tuned", "k", ONE),
    Way("C++ wrapper, cold", "base", "l", CPP),
    Way("C++ wrapper, warm", "base", "l", CPP, trips=0),
    Way("not in the workers, cold", "base awaited", "m", is_booted=False, only=COMPILED, made_in="worker"),
    Way("not in the workers, graphs wiped", "base awaited", "m", {}, GRAPHS, LOADED, is_booted=False),
    Way(
        "not in the workers, static off, cold",
        "base awaited",
        "n",
        STATIC_OFF,
        is_booted=False,
        only=COMPILED,
    ),
    Way(
        "not in the workers, static off, wiped",
        "base awaited",
        "n",
        STATIC_OFF,
        ("triton",),
        LOADED,
        is_booted=False,
    ),
    Way("a kernel that fails in a worker", "broken awaited", "o", trips=1),
    Way("a kernel that fails here", "broken", "p", ONE, trips=1),
    Way("CUDA source", "source", "q"),
    *(Way(f"launches with us, {n}", "base launches", "r") for n in "12"),
    *(Way(f"launches without us, {n}", "base launches bare", "s", is_booted=False) for n in "12"),
)

HAS_PTH = any(Path(folder, "otel_kernel.pth").exists() for folder in site.getsitepackages())
"""Whether otel-kernel boots in processes that are not given our folder of sitecustomize, as Inductor's pool."""


@dataclass
class Run:
    """What came of a way."""

    report: dict[str, Any] | None
    said: str
    pids: set[int]
    took: float


def start(folder: Path, way: Way) -> Run:
    """Run a way."""
    store = folder / f"store-{way.store}"
    store.mkdir(exist_ok=True)
    for name in way.wipe:
        shutil.rmtree(store / name, ignore_errors=True)
    recording = folder / f"{WAYS.index(way)}.db"
    paths = (str(ROOT / "otel_kernel" / "sitecustomize"), os.environ.get("PYTHONPATH", str(ROOT)))
    kept = {n: text for n, text in os.environ.items() if not n.startswith(("TRITON_", "TORCHINDUCTOR_"))}
    environment = {
        **kept,
        "TORCHINDUCTOR_CACHE_DIR": str(store),
        "PYTHONPATH": os.pathsep.join(paths),
        "OTEL_KERNEL_BOOT": "1" if way.is_booted else "0",
        "OTEL_KERNEL_RECORDING": str(recording),
        **way.variables,
    }
    began = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / "torch_program.py"), *way.words.split()],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        out, said = done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        out, said = "", f"took longer than {LONGEST} s"
    lines = [line for line in out.splitlines() if line.startswith("RESULT ")]
    report = json.loads(lines[-1].removeprefix("RESULT ")) if lines else None
    return Run(report, said, pids_of(recording), time.monotonic() - began)


def kernel_trips(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the trips of Inductor's kernels that are records."""
    return [trip for trip in report["trips"] if trip["layer"] == LAYER and trip["outcome"]]


def of(trip: dict[str, Any], name: str) -> Any:
    """Return an attribute of a trip."""
    return trip["attributes"].get(KERNEL + name)


def check(way: Way, report: dict[str, Any], run: Run) -> list[str]:
    """Return what is wrong with a run."""
    wrong: list[str] = []
    trips = kernel_trips(report)
    wanted = len(report["kernels"]) if way.trips is None else way.trips
    if len(trips) != wanted:
        names = dict(collections.Counter(trip["kernel"] for trip in trips))
        wrong.append(f"{len(trips)} trips, not {wanted}; in the code {sorted(report['kernels'])}; {names}")
    outcomes = {trip["outcome"] for trip in trips}
    if way.only and outcomes - way.only:
        wrong.append(f"outcomes {sorted(outcomes)}")
    made_in = {of(trip, "key.component.made_in") for trip in trips}
    if way.made_in and made_in != {way.made_in}:
        wrong.append(f"made in {sorted(map(str, made_in))}, not in {way.made_in}")
    for trip in trips:
        if not of(trip, "device_loaded") or trip["key"] is None or not of(trip, "identity"):
            wrong.append(f"{trip['kernel']} is not loaded, or has no key or identity")
        in_workers = way.is_booted and (HAS_PTH or "TORCHINDUCTOR_WORKER_START" in way.variables)
        if of(trip, "stage.worker") and of(trip, "compilation.outcome_from") != (
            "worker" if in_workers else "inferred"
        ):
            wrong.append(f"the outcome of {trip['kernel']} is from {of(trip, 'compilation.outcome_from')}")
    inside = [
        trip for trip in report["trips"] if trip["layer"] == "triton" and trip["parent_seq"] is not None
    ]
    if inside:
        wrong.append(f"{len(inside)} trips of Triton's own inside others")
    if run.pids - {report["pid"]}:
        wrong.append(f"{len(run.pids - {report['pid']})} other processes recorded trips")
    if "otel-kernel" in run.said:
        wrong.append(run.said[run.said.index("otel-kernel") - 100 :][:600])
    return [*wrong, *check_tuning(report), *check_end(way, report)]


def check_tuning(report: dict[str, Any]) -> list[str]:
    """Return what is wrong with what was tried: each has a span of its round around it."""
    spans = {span["id"]: span for span in report["spans"]}
    tried = [trip for trip in report["trips"] if trip["abandoned"] == "tuning"]
    stray = [
        trip["kernel"]
        for trip in tried
        if not spans.get(spans[trip["span_id"]]["parent"], {"name": ""})["name"].startswith("tune ")
    ]
    return [f"{len(stray)} of {len(tried)} tried under no span of their own: {stray[:3]}"] if stray else []


def check_end(way: Way, report: dict[str, Any]) -> list[str]:
    """Return what is wrong with how the program ended."""
    if way.words.startswith("broken"):
        graph = next(trip for trip in report["trips"] if trip["layer"] == "torch.inductor.graph")
        told = next(span["status"] for span in report["spans"] if span["id"] == graph["span_id"])
        failed = [
            trip for trip in report["trips"] if trip["layer"] == LAYER and trip["abandoned"] == "nested"
        ]
        if graph["error_type"] is None or "CompilationError" not in str(told) or len(failed) != 1:
            return [f"graph {graph['error_type']}, told as {told}; {len(failed)} kernels"]
    if way.words == "source":
        ends = [(trip["layer"], trip["outcome"], trip["error_type"]) for trip in report["trips"]]
        wanted = [("torch.nvrtc", "compiled", None)] * 2 + [("torch.nvrtc", None, "RuntimeError")]
        if ends != wanted or report["result"] != [512.0, "RuntimeError"]:
            return [f"{ends}, {report['result']}"]
    return []


def pids_of(recording: Path) -> set[int]:
    """Return the processes whose trips are in a recording."""
    if not recording.exists():
        return set()
    with closing(sqlite3.connect(recording)) as connection:
        return {
            row[0]
            for row in connection.execute(
                "SELECT DISTINCT pid FROM sessions WHERE id IN (SELECT session FROM trips)"
            )
        }


def line_of(way: Way, report: dict[str, Any], run: Run) -> str:
    """Return one line on a run."""
    counted = collections.Counter(
        f"{trip['outcome']} {'bundle' if 'bundle' in str(of(trip, 'store.kind')) else of(trip, 'key.component.made_in')}"
        for trip in kernel_trips(report)
    )
    given_up = collections.Counter(
        trip["abandoned"] or trip["error_type"]
        for trip in report["trips"]
        if trip["layer"] == LAYER and not trip["outcome"]
    )
    graphs = collections.Counter(
        trip["outcome"] or trip["abandoned"] or trip["error_type"]
        for trip in report["trips"]
        if trip["layer"] == "torch.inductor.graph"
    )
    own = sum(trip["layer"] == "triton" for trip in report["trips"])
    tunes = sum(span["name"].startswith("tune ") for span in report["spans"])
    return (
        f"{way.name:42s} {len(report['kernels']):3d} kernels; {dict(counted)}; given up {dict(given_up)}; "
        f"graphs {dict(graphs)}; Triton's own {own}; rounds {tunes}; call {report['seconds']} s, in all {run.took:.0f} s"
    )


def show_keys(reports: dict[str, dict[str, Any]]) -> None:
    """Show the keys of one kernel that was compiled in the parent and in a worker."""
    names = ("base, cold", "base, cold, pool awaited", "base, warm")
    for kernel in ("triton_red_", "user_scale"):
        for name in names:
            for trip in kernel_trips(reports[name]) if name in reports else ():
                if trip["kernel"].startswith(kernel):
                    parts = {
                        key.rpartition(".")[2]: value
                        for key, value in trip["attributes"].items()
                        if ".key.component." in key
                    }
                    print(
                        f"    {name}: {trip['kernel']} {trip['outcome']}", of(trip, "store.entry")[:8], parts
                    )


def show_times(reports: dict[str, dict[str, Any]]) -> None:
    """Show what the trips of three runs say of their times, in ms."""
    for name in ("base, cold", "base, cold, pool awaited", "base, warm", "base, warm, pool awaited"):
        for trip in kernel_trips(reports[name]) if name in reports else ():
            stages = {
                key.rpartition(".")[2]: round(value / 1e6, 1)
                for key, value in trip["attributes"].items()
                if ".stage." in key
            }
            print(f"    {name}: {trip['kernel']} {trip['outcome']} {trip['duration_ns'] / 1e6:.1f}", stages)


def main() -> int:
    """Run all ways, and return the exit code."""
    folder, until = Path(sys.argv[1]), time.monotonic() + float(sys.argv[2] if len(sys.argv) > 2 else 480)
    chosen = sys.argv[3:]
    reports: dict[str, dict[str, Any]] = {}
    failures: list[str] = []

    def follow(store: str) -> None:
        for way in (way for way in WAYS if way.store == store):
            if time.monotonic() > until:
                print(f"{way.name:42s} not run, for want of time", flush=True)
                continue
            run = start(folder, way)
            if run.report is None:
                failures.append(way.name)
                print(f"{way.name:42s} FAILED: {run.said[-1500:]}", flush=True)
                continue
            reports[way.name] = run.report
            wrong = check(way, run.report, run)
            failures.extend([way.name] * bool(wrong))
            print(line_of(way, run.report, run), *(f"\n    WRONG: {each}" for each in wrong), flush=True)

    alone = [store for store in ("r", "s") if not chosen or store in chosen]
    stores = [store for store in dict.fromkeys(way.store for way in WAYS) if not chosen or store in chosen]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        # The longest first; launches are measured where nothing else runs.
        for store in sorted(set(stores) - set(alone), key=lambda store: "jlkacbdtn".find(store) % 99):
            pool.submit(follow, store).add_done_callback(lambda future: future.result())
    for store in alone:
        follow(store)
    show_keys(reports)
    show_times(reports)
    costs = {name: report["result"] for name, report in reports.items() if name.startswith("launches")}
    print("launches:", costs)
    for n in "12":
        if len({cost["calls"] for name, cost in costs.items() if name.endswith(n)}) > 1:
            failures.append("launches")
    (folder / "torch_runs.json").write_text(json.dumps(reports))
    print(f"{len(failures)} wrong: {failures}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
