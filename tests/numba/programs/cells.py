"""Cells of a notebook, entered one after the other."""

from __future__ import annotations

from typing import Any

from conformance.harness import value, watch
from IPython.core.interactiveshell import InteractiveShell

watch()
shell: Any = InteractiveShell.instance()
for cell in (
    "from numba import njit",
    "@njit(cache=True)\ndef stored(x):\n    return x + 1",
    "@njit\ndef plain(x):\n    return x + 2",
    "results = [stored(1), plain(1)]",
    "@njit\ndef plain(x):\n    return x + 3",
    "results.append(plain(1))",
):
    done = shell.run_cell(cell)
    done.raise_error()
value("results", shell.user_ns["results"])
