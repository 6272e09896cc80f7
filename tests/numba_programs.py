"""Programs that compile with Numba, run in a folder and a store of their own."""

from __future__ import annotations

import shutil
from pathlib import Path

from conformance.report import Report, run_python

PROGRAMS = Path(__file__).parent / "numba" / "programs"


class Programs:
    """A folder of programs with a store of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store"

    def copy(self, name: str, to: str | None = None) -> Path:
        """Copy a program of this suite and return its path."""
        path = self.folder / f"{to or name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROGRAMS / f"{name}.py", path)
        return path

    def run(self, module: str, **variables: str) -> Report:
        """Import a module in a process of its own.

        Args:
            module: its name.
            **variables: of the environment.
        """
        environment = {
            "NUMBA_CACHE_DIR": str(self.store),
            "XDG_CACHE_HOME": str(self.folder / "user"),
            "CONFORMANCE_RUNTIME": "numba",
            **variables,
        }
        return run_python(("-c", f"import {module}"), self.folder, environment)
