"""Builds the servers from their Go modules, once for every state of these, outside the checkout."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final, Literal, TypeAlias

ServerName: TypeAlias = Literal["collector", "jaeger"]

PACKAGES: Final[dict[ServerName, str]] = {
    "collector": ".",
    "jaeger": "github.com/jaegertracing/jaeger/cmd/jaeger",
}
"""What is built of each module."""

BUILD_SECONDS: Final = 3600
"""Within this time a build must end: minutes on two idle cores with an empty cache of Go."""

FOLDER: Final = Path(__file__).parent / "modules"
_GO: Final = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -trimpath"}


def missing() -> str | None:
    """Return what is needed to build and not there, or None."""
    return (
        None if shutil.which("go") else "the servers of these tests are built by `go`, which is not installed"
    )


def binary(name: ServerName) -> Path:
    """Return where the server is, or will be once it is built: a folder named by all that goes into it."""
    digest = hashlib.sha256(_go("version"))
    for path in sorted((FOLDER / name).iterdir()):
        if path.suffix in (".go", ".mod", ".sum"):
            digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "otel-kernel" / "servers" / digest.hexdigest()[:32] / name


def built(name: ServerName) -> Path:
    """Return the server, after building it if need be; of several processes that ask at once one builds."""
    path = binary(name)
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                made = Path(folder) / name
                _go("build", "-ldflags=-s -w", "-o", str(made), PACKAGES[name], folder=FOLDER / name)
                made.replace(path)
    return path


def _go(*arguments: str, folder: Path = FOLDER) -> bytes:
    command = ["nice", "-n", "5", "go", *arguments]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **_GO}, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} in {folder}:\n{done.stderr.decode()[-4000:]}")
    return done.stdout
