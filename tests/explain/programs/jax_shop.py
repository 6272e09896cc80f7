"""A kernel of JAX that a function and a global go into; variables of the environment say how it is called."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import otel_kernel

otel_kernel.instrument(recording=sys.argv[1], level="full")

if os.environ.get("THRESHOLD") != "default":
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

RATE = 1.19
OPENED = time.time_ns() % 1_000_003 if "OPENED" in os.environ else 0


def with_tax(values: Any) -> Any:
    return values * RATE


def price(values: Any) -> Any:
    # the sum with tax
    total = jnp.sum(with_tax(values)) + OPENED
    if "SVD" in os.environ:
        u, _, v = jnp.linalg.svd(values.reshape(4, -1), full_matrices=False)
        total += jnp.sum(u @ v)
    return total


options = {"xla_llvm_disable_expensive_passes": True} if "OPTION" in os.environ else None
shape = tuple(map(int, os.environ.get("SHAPE", "8").split("x")))
values = np.ones(shape, os.environ.get("DTYPE", "float32"))
if "AOT" in os.environ:
    jax.jit(price).lower(values).compile()(values)
else:
    jax.jit(price, compiler_options=options)(values)
