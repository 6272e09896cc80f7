"""Programs with a store and a recording, that run, change and run again."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import torch_store
from environments import python_with

from explain.changes import Act, Change

HERE = Path(__file__).parent
TESTS = HERE.parent
ROOT = TESTS.parent

OLDER: Final = {"numba": ("numba==0.66.0",), "jax": ("jax==0.8.3",)}
"""What older versions are installed with."""

KERNELS: Final = {
    "numba": "__main__.price",
    "jax": "jit(price)",
    "triton": "__main__.price",
    "torch": "__main__.price[forward]",
}
"""The kernel of each program."""

_STORES: Final = {
    "numba": "NUMBA_CACHE_DIR",
    "jax": "JAX_COMPILATION_CACHE_DIR",
    "triton": "TRITON_CACHE_DIR",
    "torch": "TORCHINDUCTOR_CACHE_DIR",
}
_ENTRIES: Final = {
    "numba": "*price*.nbc",
    "jax": "jit_price-*-cache",
    "triton": "*price*",
    "torch": "fxgraph/**/*",
}
_OWN: Final = ("OTEL_", "PYTEST_", "NUMBA_", "JAX_", "XLA_", "TRITON_", "TORCH")


class World:
    """A program of one runtime, its store and its recording."""

    def __init__(self, folder: Path, runtime: str) -> None:
        self.folder = folder
        self.runtime = runtime
        self.program = folder / "shop.py"
        self.store = folder / "store"
        self.recording = folder / "recording.db"
        self._base: Path | None = None

    def make(self) -> None:
        """Make it new."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        shutil.copy(HERE / "programs" / f"{self.runtime}_shop.py", self.program)
        if self.runtime == "torch":
            torch_store.copy_to(self.store)

    def run(
        self, number: int, change: Change, variables: Mapping[str, str], *, is_older: bool = False
    ) -> None:
        """Run the program, and wait until it has ended well."""
        environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith(_OWN)},
            "PYTHONPATH": os.pathsep.join(map(str, (ROOT, TESTS))),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OTEL_KERNEL_RUN": f"{number:032x}",
            "JAX_PLATFORMS": "cpu",
            "TRITON_DEFAULT_FP_FUSION": "1",  # Triton 3.9 warns where it is not set
            _STORES[self.runtime]: str(self.store),
            **change.always,
            **variables,
        }
        self._choose_store(environment)
        python = python_with(*OLDER[self.runtime]) if is_older else sys.executable
        command = [str(python), str(self.program), str(self.recording)]
        if change.is_full:
            command = on_a_full_disk(self.store, command)
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, textwrap.indent(done.stdout + done.stderr[-4000:], "  ")

    def _choose_store(self, environment: dict[str, str]) -> None:
        chosen = environment.pop("STORE", None)
        if chosen is None:
            return
        del environment[_STORES[self.runtime]]
        if chosen:
            environment[_STORES[self.runtime]] = str(self.folder / chosen)

    def change(self, change: Change) -> dict[str, str]:
        """Do what is to be changed, and return the variables of the second run."""
        if change.edit is not None:
            text = self.program.read_text()
            before, after = change.edit
            assert before in text, before
            self.program.write_text(text.replace(before, after))
        variables = dict(change.variables)
        if change.act is not None:
            variables.update(self._act(change.act))
        return variables

    def _act(self, act: Act) -> Mapping[str, str]:
        if act == "touch":
            os.utime(self.program)
        elif act == "move the store":
            self.store.rename(self.folder / "moved")
            return {_STORES[self.runtime]: str(self.folder / "moved")}
        else:
            entries = [path for path in self.store.rglob(_ENTRIES[self.runtime]) if path.is_file()]
            assert entries
            for entry in entries:
                if act == "delete the entry":
                    entry.unlink()
                else:
                    entry.write_bytes(entry.read_bytes()[:40])
        return {}

    def save(self, at: Path) -> None:
        """Keep a copy of it as it is."""
        shutil.copytree(self.folder, at)

    def restore(self, saved: Path) -> None:
        """Make it what it was, in the same place: stores hold paths, and times of files."""
        shutil.rmtree(self.folder)
        shutil.copytree(saved, self.folder)


def on_a_full_disk(folder: Path, command: list[str]) -> list[str]:
    """Return a command line that runs `command` with a disk at `folder` that is full, for it alone."""
    folder.mkdir(exist_ok=True)
    mount = 'mount -t tmpfs -o size=4k tmpfs "$1" && head -c 4096 /dev/zero > "$1/full" && shift && exec "$@"'
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(folder), *command]


def why_no_disk() -> str | None:
    """Return why a disk cannot be made, or None if it can."""
    if not shutil.which("unshare"):
        return "a disk for one process needs unshare, of util-linux"
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"mounting a tmpfs is not permitted: {done.stderr.strip()}" if done.returncode else None


def name_of(change: Change) -> str:
    """Return a short name of what the first run of a change is, for those that can share it."""
    what = repr((change.runtime, sorted(change.always.items()), change.older, change.is_full))
    return f"{change.runtime}-{hashlib.sha256(what.encode()).hexdigest()[:8]}"
