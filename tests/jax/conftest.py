"""A real JAX on the CPU, instrumented, with an empty memory and, where a test asks for it, an empty store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from telemetry import Telemetry

from otel_kernel.instrumentors.jax import JaxInstrumentor
from otel_kernel.records import Trip

# This folder is found under the name, too, where there is no JAX.
_found = find_spec("jax")
collect_ignore_glob = ["test_*.py"] if _found is None or _found.origin is None else []

os.environ.setdefault("JAX_PLATFORMS", "cpu")

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def instrumentor(telemetry: Telemetry) -> Iterator[JaxInstrumentor]:
    """JAX's instrumentor, at work for the time of the test; what JAX has in memory is forgotten before."""
    import jax

    made = JaxInstrumentor()
    jax.clear_caches()
    made.instrument()
    yield made
    if made.is_instrumented_by_opentelemetry:
        made.uninstrument()


@pytest.fixture
def options() -> Iterator[Callable[..., None]]:
    """Sets options of JAX by name, without `jax_`, until the test ends; what JAX knows of its store goes."""
    import jax
    from jax._src import compilation_cache

    before: dict[str, Any] = {}

    def change(**values: Any) -> None:
        for name, value in values.items():
            before.setdefault(name, getattr(jax.config, f"jax_{name}"))
            jax.config.update(f"jax_{name}", value)

    compilation_cache.reset_cache()
    yield change
    for name, value in before.items():
        jax.config.update(f"jax_{name}", value)
    compilation_cache.reset_cache()


@pytest.fixture
def store(options: Callable[..., None], tmp_path: Path) -> Path:
    """The folder of an empty store that takes everything."""
    folder = tmp_path / "store"
    options(
        compilation_cache_dir=str(folder),
        persistent_cache_min_compile_time_secs=0.0,
        persistent_cache_min_entry_size_bytes=-1,
    )
    return folder


Program = Callable[..., Callable[[], list[Trip]]]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """Starts a file of `programs/`, with arguments and variables of the environment.

    It returns a function that waits until the program has ended well, and returns its trips.
    """
    processes: list[subprocess.Popen[str]] = []

    def start(name: str, *arguments: str, **variables: str) -> Callable[[], list[Trip]]:
        report = tmp_path / f"trips-{len(processes)}.jsonl"
        report.touch()
        environment = {
            **{
                key: value
                for key, value in os.environ.items()
                if not key.startswith(("OTEL_", "JAX_", "XLA_"))
            },
            "JAX_PLATFORMS": "cpu",
            "PYTHONPATH": os.pathsep.join(map(str, (PROGRAMS, ROOT))),
            "TRIPS": str(report),
            **variables,
        }
        process = subprocess.Popen(
            [sys.executable, str(PROGRAMS / name), *arguments],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)

        def ended() -> list[Trip]:
            output, errors = process.communicate(timeout=200)
            assert process.returncode == 0, textwrap.indent(output + errors[-4000:], "  ")
            return [Trip.from_json(json.loads(line)) for line in report.read_text().splitlines()]

        return ended

    yield start
    for process in processes:
        process.kill()
        process.communicate()
