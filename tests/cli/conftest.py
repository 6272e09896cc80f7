"""A recording of real runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command import COMMAND

PROGRAM = Path(__file__).parent / "programs" / "shop_kernels.py"


@pytest.fixture(scope="session")
def real_recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of three runs of one program: cold, warm, and after an edit."""
    folder = tmp_path_factory.mktemp("real")
    program = Path(shutil.copy(PROGRAM, folder))
    recording = folder / "recording.db"

    def run() -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        subprocess.run(
            [*COMMAND, "run", "--recording", recording, "--", sys.executable, program.name],
            cwd=folder,
            env={**environment, "NUMBA_CACHE_DIR": str(folder / "store")},
            capture_output=True,
            check=True,
        )

    run()
    run()
    program.write_text(program.read_text().replace("1.19", "1.07"))
    run()
    return recording
