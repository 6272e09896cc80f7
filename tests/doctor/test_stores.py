"""An instrumentor knows where its runtime's store is, without importing the runtime."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from otel_kernel.boot import RUNTIMES

OURS = """
import importlib, sys
module, _, name = sys.argv[1].partition(":")
location = getattr(importlib.import_module(module), name).store_location()
print(location.folder, location.setting, location.is_off, sys.argv[2] in sys.modules, sep="|")
"""
THEIRS = {
    "jax": "import jax; print(jax.config.jax_compilation_cache_dir)",
    "numba": "from numba.core import config; print(config.CACHE_DIR or None)",
    "torch": "from torch._inductor.runtime.cache_dir_utils import cache_dir; print(cache_dir())",
    "triton": "from triton import knobs; print(knobs.cache.dir)",
}
VARIABLES = {
    "jax": "JAX_COMPILATION_CACHE_DIR",
    "numba": "NUMBA_CACHE_DIR",
    "torch": "TORCHINDUCTOR_CACHE_DIR",
    "triton": "TRITON_CACHE_DIR",
}


def needs(runtime: str) -> None:
    spec = find_spec(runtime)
    if spec is None or spec.origin is None:  # a folder of tests of that name is no runtime
        if os.environ.get("OTEL_KERNEL_REQUIRE_ALL") == "1":
            pytest.fail(f"{runtime} is not installed")
        pytest.skip(f"{runtime} is not installed")


def said(code: str, *arguments: str, variables: Mapping[str, str]) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES.values()}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**kept, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("runtime", sorted(RUNTIMES))
def test_the_store_is_where_the_runtime_has_it(runtime: str, tmp_path: Path) -> None:
    needs(runtime)
    ours = [
        said(OURS, RUNTIMES[runtime], runtime, variables=variables).split("|")
        for variables in ({}, {VARIABLES[runtime]: str(tmp_path)})
    ]

    assert [said(THEIRS[runtime], variables={}), str(tmp_path)] == [folder for folder, *_ in ours]
    assert all(VARIABLES[runtime] in setting for _, setting, _, _ in ours)
    assert [str(runtime == "jax"), "False"] == [is_off for _, _, is_off, _ in ours]
    assert ["False", "False"] == [imported for *_, imported in ours]


def test_triton_has_a_home(tmp_path: Path) -> None:
    needs("triton")
    variables = {"TRITON_HOME": str(tmp_path)}

    assert (
        said(THEIRS["triton"], variables=variables)
        == said(OURS, RUNTIMES["triton"], "triton", variables=variables).partition("|")[0]
    )
