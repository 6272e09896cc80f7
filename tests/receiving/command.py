"""`otel-kernel receive` as users run it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cli.command import COMMAND


@dataclass
class Receiving:
    """The command at work."""

    process: subprocess.Popen[str]
    recording: Path
    said: list[str] = field(default_factory=list[str])
    port: int = 0

    @property
    def url(self) -> str:
        """Where it takes OTLP."""
        return f"http://127.0.0.1:{self.port}"

    def wait(self) -> int:
        """Return its exit code, and all that it has said in `said`."""
        assert self.process.stderr is not None
        self.said += self.process.stderr.read().splitlines()
        return self.process.wait(60)

    def end(self) -> int:
        """Interrupt it as ^C does, and return its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.wait()


@contextmanager
def receiving(
    recording: Path, *options: str | Path, port: int = 0, variables: Mapping[str, str] | None = None
) -> Generator[Receiving]:
    """Start the command, wait until it listens, and end it."""
    command = [*COMMAND, "receive", "--listen", f"127.0.0.1:{port}", "--recording", recording, *options]
    with subprocess.Popen(
        [str(part) for part in command],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(variables or {})},
    ) as process:
        started = Receiving(process, recording)
        assert process.stderr is not None
        try:
            for line in process.stderr:
                started.said.append(line.rstrip())
                if found := re.search(r"listening on http://127\.0\.0\.1:(\d+)/", line):
                    started.port = int(found[1])
                    break
            assert started.port, started.said
            yield started
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(60)
