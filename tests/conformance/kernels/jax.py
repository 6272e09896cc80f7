"""Kernels of JAX's."""

# JAX's own types are half unknown, and some of its names here are private.
# mypy: disable-error-code="untyped-decorator"
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportPrivateImportUsage=false

from __future__ import annotations

import functools
import os
import warnings
from inspect import signature
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax._src import compilation_cache, compiler
from jax._src.lib.mlir import ir
from opentelemetry.instrumentation.utils import suppress_instrumentation

from conformance.adapter import Value

X = np.float32(2)

# What JAX says of a store that it cannot use. It goes on without.
warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")


@jax.jit
def otk_secret_marker(x: Any) -> Any:
    return x * 3


@jax.jit
def main_kernel(x: Any) -> Any:
    return otk_secret_marker(x) + 1


@jax.jit
def second_kernel(x: Any, y: Any) -> Any:
    return x - y


@jax.jit
def unstored_kernel(x: Any) -> Any:
    return x / 2


@jax.jit
def failing_kernel(x: Any) -> Any:
    return jax.ffi.ffi_call("otk_secret_marker", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


@jax.jit
def unloadable_kernel(x: Any) -> Any:
    return x + 4


@jax.jit
def controlled_kernel(x: Any) -> Any:
    return x + 5


def main() -> Value:
    return float(np.asarray(main_kernel(X)))


def second() -> Value:
    return float(np.asarray(second_kernel(X, X)))


def unstored() -> Value:
    """Set the threshold, for the time of the call, beyond what anything has."""
    threshold = "jax_persistent_cache_min_entry_size_bytes"
    before = getattr(jax.config, threshold)
    jax.config.update(threshold, 10**12)
    try:
        return float(np.asarray(unstored_kernel(X)))
    finally:
        jax.config.update(threshold, before)


def failing() -> Value:
    return float(np.asarray(failing_kernel(X)))


def unloadable() -> Value:
    """Let JAX raise what it cannot read: a folder in place of an entry."""
    jax.config.update("jax_raise_persistent_cache_errors", True)
    entry = _entry_of(unloadable_kernel)
    entry.unlink()
    entry.mkdir()
    return float(np.asarray(unloadable_kernel(X)))


def control_flow() -> Value:
    """Let JAX compile what it finds an entry of another make for, as it does by default."""
    data = compilation_cache.combine_executable_and_time(b"an entry", 1)
    _entry_of(controlled_kernel).write_bytes(compilation_cache.compress_executable(data))
    return float(np.asarray(controlled_kernel(X)))


def _entry_of(kernel: Any) -> Path:
    """Return the entry of a kernel, which JAX writes now, unseen by us, and forgets."""
    with suppress_instrumentation():
        kernel.lower(X).compile()
    jax.clear_caches()
    folder = Path(os.environ["JAX_COMPILATION_CACHE_DIR"])
    (entry,) = folder.glob(f"jit_{kernel.__name__}-*-cache")
    return entry


def another(n: int) -> Value:
    @jax.jit
    def kernel(x: Any) -> Any:
        return x + n

    return float(np.asarray(kernel(X)))


def quick(n: int) -> object:
    """Hand JAX's compiler a module without the options that it looks into first."""
    module = _module()
    named: dict[str, Any] = {
        "backend": jax.devices()[0].client,
        "computation": module,
        "devices": np.array(jax.devices()[:1]),
        "compile_options": None,
        "host_callbacks": (),
        "executable_devices": None,
    }
    taken = signature(compiler.compile_or_get_cached).parameters
    try:
        compiler.compile_or_get_cached(**{name: named[name] for name in taken if name in named})
    except AttributeError:
        return module
    raise AssertionError("a module without options has compiled")


@functools.cache
def _context_and_text() -> tuple[Any, str]:
    module: Any = unstored_kernel.lower(X).compiler_ir()
    return module.context, module.operation.get_asm()


def _module() -> Any:
    context, text = _context_and_text()
    with context:
        return ir.Module.parse(text)


def on_launch() -> list[Any]:
    return [main_kernel]
