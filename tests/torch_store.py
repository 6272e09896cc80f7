"""A store of Inductor's that holds what every process would build first.

On a fresh store Inductor tries which vector instructions the compiler and the processor know, and builds a
header: half a minute before the first kernel. That is done once for a torch and a processor, and copied.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

BUILD = Path(__file__).parents[1] / "build"

_FIRST_KERNEL = "import torch; torch.compile(lambda x: x.erfc() * 41)(torch.ones(8))"
_OF_THE_KERNEL = ("fxgraph", "aotautograd", "locks")


def copy_to(folder: Path) -> None:
    """Make `folder` such a store; nothing that is in it belongs to a graph or a kernel of a test."""
    shutil.copytree(_prepared(), folder, dirs_exist_ok=True)


def libraries() -> list[Path]:
    """Return the libraries that such a store holds: attempts at instructions, and one kernel."""
    return sorted(_prepared().glob("*/*.main.so"))


def environment(folder: Path) -> dict[str, str]:
    """Return the variables that make Inductor keep its store at `folder`, with nothing else of torch's."""
    own = ("TORCH", "TRITON", "OTEL_", "PYTEST_")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(own)}
    return {**kept, "TORCHINDUCTOR_CACHE_DIR": str(folder), "TRITON_CACHE_DIR": str(folder / "triton")}


def _prepared() -> Path:
    made = BUILD / f"torch-store-{version('torch')}-{platform.machine()}"
    if made.is_dir():
        return made
    BUILD.mkdir(exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=BUILD))
    subprocess.run(
        [sys.executable, "-c", _FIRST_KERNEL], env=environment(fresh), check=True, timeout=280, cwd=BUILD
    )
    for name in _OF_THE_KERNEL:
        shutil.rmtree(fresh / name, ignore_errors=True)
    try:
        fresh.rename(made)
    except OSError:  # another run was quicker
        shutil.rmtree(fresh)
    return made
