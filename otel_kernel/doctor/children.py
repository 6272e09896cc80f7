"""Starts Python processes as a program would have them, but for what they record."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from otel_kernel.options import VARIABLE_PREFIX


def python(
    *arguments: str, changes: Mapping[str, str] | None = None, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run this interpreter in this environment, without what it sets of ours.

    Args:
        *arguments: of the interpreter.
        changes: of the environment.
        timeout: in seconds.

    Raises:
        subprocess.TimeoutExpired: it took longer.
        OSError: it cannot be started.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(VARIABLE_PREFIX)}
    return subprocess.run(
        [sys.executable, *arguments],
        env={**kept, **(changes or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        timeout=timeout,
        check=False,
    )
