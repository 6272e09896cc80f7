"""The first code of ours in a process: waits for a runtime to be imported, then instruments it.

Everything heavier (wrapt, the OpenTelemetry API, the instrumentor) is imported at that moment. A process
that imports no runtime pays for this module alone.

Two ways lead here, and both are inert unless `OTEL_KERNEL_BOOT` is `1`: `otel_kernel.pth` (from Python 3.15
`otel_kernel.start`), which lies beside the package and works without `PYTHONPATH`, and the folder
`sitecustomize`, which `otel-kernel run` puts first on `PYTHONPATH` and which works where no `.pth` is read.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

BOOT_VARIABLE = "OTEL_KERNEL_BOOT"
"""`1` lets the processes of a program boot; child processes inherit it."""

BOOTED_VARIABLE = "OTEL_KERNEL_BOOTED"
"""A folder in which the processes of a program leave word for the `otel-kernel run` that started it."""

STRIPPED = "stripped"
"""The word left by a process that starts a Python without our variables; its text is the executable."""

FOREIGN = "foreign"
"""The word left by the first interpreter without otel-kernel, as `sitecustomize` spells it, too."""

RUNTIMES = {
    "jax": "otel_kernel.instrumentors.jax:JaxInstrumentor",
    "numba": "otel_kernel.instrumentors.numba:NumbaInstrumentor",
    "torch": "otel_kernel.instrumentors.torch:TorchInstrumentor",
    "triton": "otel_kernel.instrumentors.triton:TritonInstrumentor",
}
"""The module whose import wakes an instrumentor; the same entry points are in pyproject.toml."""

_started = False  # not an environment variable, which child processes would inherit
_folder = ""


def start() -> None:
    """Instrument each runtime as soon as it is imported, if the environment asks for it. Never raises."""
    global _started, _folder
    if _started or os.environ.get(BOOT_VARIABLE) != "1":
        return
    _started = True
    _folder = os.environ.get(BOOTED_VARIABLE, "")
    try:
        _await_imports()
    except Exception:
        return  # without the word below, `otel-kernel run` says that nothing booted
    leave_word(str(os.getpid()))


def leave_word(name: str, text: str = "") -> None:
    """Leave `text` in a file for `otel-kernel run`, if it waits for it and no file of that name is there."""
    if not _folder:
        return
    try:
        file = os.open(f"{_folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return
    try:
        os.write(file, text.encode("utf-8", "backslashreplace"))
    finally:
        os.close(file)


def _await_imports() -> None:
    from otel_kernel.imports import when_imported

    for runtime in RUNTIMES:
        when_imported(runtime, _instrument)
    if _folder:
        when_imported("subprocess", _watch_children)


def _instrument(runtime: ModuleType) -> None:
    from importlib import import_module

    module, _, name = RUNTIMES[runtime.__name__].partition(":")
    try:
        instrumentor = getattr(import_module(module), name)()
    except ImportError as error:
        from otel_kernel import faults

        faults.logger.error("%s is not instrumented: %s", runtime.__name__, error)
        return
    instrumentor.instrument()


def _watch_children(_subprocess: ModuleType) -> None:
    from otel_kernel import children

    children.watch()
