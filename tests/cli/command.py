"""Runs `otel-kernel` as users do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

COMMAND = (sys.executable, "-c", "from otel_kernel.cli import main; main()")


def otel_kernel(
    *arguments: str | Path, stdin: bytes = b"", variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; its output is text."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env={**os.environ, **(variables or {})},
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def refusal(*arguments: str | Path, variables: Mapping[str, str] | None = None) -> str:
    """Return the one line that a command says when it ends with exit code 2 and prints nothing."""
    done = otel_kernel(*arguments, variables=variables)

    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith("otel-kernel: "), done
    assert done.stderr.count("\n") == 1, done

    return done.stderr.removeprefix("otel-kernel: ").removesuffix("\n")
