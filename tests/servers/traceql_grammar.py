"""The grammar of TraceQL that Grafana's editor uses, from npm, unpacked outside the checkout."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "traceql"
_FILES: Final = ("check.mjs", "package.json", "package-lock.json")


def missing() -> str | None:
    """Return what is needed to use the grammar and not there, or None."""
    return None if shutil.which("node") and shutil.which("npm") else "TraceQL's grammar needs node and npm"


def wrong_places(queries: Sequence[str]) -> list[list[int]]:
    """Return for each query at which characters it is no TraceQL."""
    done = _run("node", "check.mjs", folder=_installed(), given=json.dumps(queries))
    found: list[list[int]] = json.loads(done)
    return found


def _installed() -> Path:
    digest = hashlib.sha256(b"\0".join((_FOLDER / name).read_bytes() for name in _FILES)).hexdigest()
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    target = home / "otel-kernel" / "servers" / "traceql" / digest[:32]
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with (target.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                with tempfile.TemporaryDirectory(dir=target.parent) as name:
                    made = Path(name) / "made"
                    made.mkdir()
                    for file in _FILES:
                        shutil.copy(_FOLDER / file, made)
                    _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", folder=made)
                    made.replace(target)
    return target


def _run(*command: str, folder: Path, given: str = "") -> str:
    done = subprocess.run(
        command, cwd=folder, input=given, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
