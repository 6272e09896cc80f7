"""Servers and tools of Debian's packages, unpacked outside the checkout: nothing is installed or started."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final, Literal, TypeAlias

Program: TypeAlias = Literal["prometheus", "promtool", "prometheus-alertmanager", "amtool"]

PACKAGES: Final[dict[Program, str]] = {
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "amtool": "prometheus-alertmanager",
}
"""The package of each program."""

TEMPLATES: Final = Path("/usr/share/prometheus/alertmanager")
"""Where Debian's Alertmanager reads its templates, wherever it is itself."""


def missing() -> str | None:
    """Return what is needed to get the programs and not there, or None."""
    tools = [tool for tool in ("apt-get", "dpkg-deb") if not shutil.which(tool)]
    return f"Prometheus comes from Debian packages, and {' and '.join(tools)} is not here" if tools else None


def alertmanager_missing() -> str | None:
    """Return what is needed to start Alertmanager and not there, or None."""
    if missing() is None and not TEMPLATES.exists() and not os.access(TEMPLATES.parents[1], os.W_OK):
        return f"Alertmanager needs its templates in {TEMPLATES}, where only root may put them"
    return missing()


def alertmanager() -> Path:
    """Return Alertmanager, after putting its templates where it reads them if need be."""
    program = binary("prometheus-alertmanager")
    if not TEMPLATES.exists():
        shutil.copytree(program.parents[2] / TEMPLATES.relative_to("/"), TEMPLATES, dirs_exist_ok=True)
    return program


def binary(program: Program) -> Path:
    """Return a program, after getting its package if need be.

    Packages are unpacked, not installed: that needs no root, asks no questions and starts no service.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "otel-kernel" / "servers" / "debian"
    unpacked = folder / PACKAGES[program]
    if not unpacked.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{PACKAGES[program]}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not unpacked.exists():
                _unpack(PACKAGES[program], unpacked)
    return unpacked / "usr" / "bin" / program


def _unpack(package: str, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        folder = Path(name)
        try:
            _run(folder, "apt-get", "download", package)
        except RuntimeError:
            # A fresh machine has no list of packages yet; another one may be older than the mirror.
            _run(folder, "apt-get", "update")
            _run(folder, "apt-get", "download", package)
        (archive,) = folder.glob("*.deb")
        _run(folder, "dpkg-deb", "--extract", archive.name, "root")
        (folder / "root").replace(target)


def _run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
