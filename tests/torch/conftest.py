"""Programs that use a real torch on the CPU, each with a store of its own."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from torch_programs import Report, Run, run_program

# This folder is found under the name, too, where there is no torch.
_found = find_spec("torch")
collect_ignore_glob = ["test_*.py"] if _found is None or _found.origin is None else []


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs programs that share one store."""

    def start(name: str, *arguments: str, **variables: str) -> Report:
        return run_program(tmp_path, name, *arguments, **variables)

    return start
