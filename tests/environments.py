"""Interpreters with other versions of a runtime, kept outside the checkout."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

_BESIDE: Final = ("opentelemetry-api", "opentelemetry-instrumentation", "packaging", "wrapt")
"""What otel-kernel needs, in the versions that run here."""


def python_with(*requirements: str) -> Path:
    """Return an interpreter with these packages and what otel-kernel needs, after making it if need be."""
    from importlib.metadata import version

    wanted = (*requirements, *(f"{name}=={version(name)}" for name in _BESIDE))
    digest = hashlib.sha256("\n".join((platform.python_version(), *wanted)).encode()).hexdigest()[:12]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "otel-kernel" / "environments"
    made = folder / digest
    python = made / "bin" / "python"
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{digest}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                _make(made, wanted)
    return python


def _make(folder: Path, wanted: tuple[str, ...]) -> None:
    beside_us = Path(sys.executable).with_name("uv")
    uv = str(beside_us) if beside_us.exists() else shutil.which("uv")
    assert uv, "other versions are installed with uv: pip install uv"
    # Made in place, since its scripts hold its path; what is half made has no mark and is made again.
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _run(uv, "venv", "--quiet", "--python", sys.executable, str(folder))
        _run(uv, "pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), *wanted)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
