"""Programs that compile with Numba, run in a folder and a store of their own."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
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
        return self._run(("-c", f"import {module}"), variables)

    def run_script(self, name: str, *arguments: str) -> Report:
        """Run a program as a script, with arguments, in a process of its own."""
        return self._run((f"{name}.py", *arguments), {})

    def _run(self, arguments: Sequence[str], variables: Mapping[str, str]) -> Report:
        environment = {
            "NUMBA_CACHE_DIR": str(self.store),
            "XDG_CACHE_HOME": str(self.folder / "user"),
            "IPYTHONDIR": str(self.folder / "ipython"),
            "CONFORMANCE_ADAPTER": "numba",
            **variables,
        }
        return run_python(arguments, self.folder, environment)
