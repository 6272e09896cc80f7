"""The example that compiles what a warm-up list names: the next run of the program loads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command import otel_kernel

TESTS = Path(__file__).parents[1]
EXAMPLE = TESTS.parent / "examples" / "warm_up.py"

NUMBA = """
from numba import njit

@njit(cache=True)
def price(values, rate):
    return values.sum() * rate

def serve(size):
    import numpy as np
    price(np.ones((size, size), "float32"), size)
"""

JAX = """
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

@jax.jit
def price(values, rate):
    return jnp.sum(values) * rate

def serve(size):
    price(np.ones((size, 4), "float32"), np.int32(3))
"""

TRITON = """
import triton
import triton.language as tl
import triton_device

@triton.jit
def price(values, count, size: tl.constexpr):
    index = tl.arange(0, size)
    tl.store(values + index, tl.load(values + index, mask=index < count) * 3)

def serve(size):
    price[(1,)](triton_device.floats(64), size + 1, size=64, num_warps=2)
"""

MAIN = """
import otel_kernel
import shop

otel_kernel.phase("serving")
shop.serve(8)
"""


@pytest.mark.parametrize("program", [NUMBA, JAX, TRITON], ids=["numba", "jax", "triton"])
def test_what_the_list_names_is_loaded_at_the_next_start(program: str, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, TESTS, TESTS.parent))),
        "JAX_PLATFORMS": "cpu",
        "TRITON_DEFAULT_FP_FUSION": "1",
        "NUMBA_CACHE_DIR": store,
        "JAX_COMPILATION_CACHE_DIR": store,
        "TRITON_CACHE_DIR": store,
    }
    (tmp_path / "shop.py").write_text(program)
    (tmp_path / "main.py").write_text(MAIN)
    recording, listed = tmp_path / "r.db", tmp_path / "warmup.json"

    def outcomes() -> list[str]:
        done = otel_kernel(
            "run", "--recording", recording, "--", sys.executable, tmp_path / "main.py", variables=variables
        )
        assert 0 == done.returncode, done.stderr
        trips = map(json.loads, otel_kernel("list", "--json", recording).stdout.splitlines())
        return [trip["outcome"] for trip in trips if "price" in trip["kernel"]]

    assert ["compiled"] == outcomes()

    listed.write_text(otel_kernel("warmup-list", "--json", recording).stdout)
    for path in Path(store).rglob("*"):
        if path.is_file():
            path.unlink()
    done = subprocess.run(
        [sys.executable, EXAMPLE, listed, "shop"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, 1) == (done.returncode, done.stdout.count("compiled: ")), done
    assert ["loaded"] == outcomes()


def test_what_cannot_be_compiled_from_the_list_is_named(tmp_path: Path) -> None:
    listed = tmp_path / "warmup.json"
    kernel = {
        "runtime": "torch",
        "kernel": "shop.model[forward]",
        "specializations": [{"specialization": "f32[8]"}],
    }
    listed.write_text(json.dumps({"kernels": [kernel]}))
    done = subprocess.run([sys.executable, EXAMPLE, listed], capture_output=True, text=True, check=False)

    assert (1, "not compiled: shop.model[forward] f32[8]: call it with such arguments\n") == (
        done.returncode,
        done.stdout,
    )
