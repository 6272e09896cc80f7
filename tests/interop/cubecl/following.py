"""`otel-kernel replay --follow` while it runs, and what has arrived of it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cli.command import COMMAND
from otlp.receiver import Receiver
from otlp.views import views_of

from otel_kernel.kinds import Stamped
from otel_kernel.mapping import NotATrip, Reject
from otel_kernel.record_mapping import read_any
from otel_kernel.records import Trip


def found_in(receiver: Receiver) -> list[Trip | Stamped]:
    """Return the records that the spans stand for, without their ids, in order."""
    found: list[Trip | Stamped] = []
    for request in receiver.trace_requests:
        for view in views_of(request):
            record = read_any(view)
            assert not isinstance(record, Reject), record
            if isinstance(record, Trip):
                found.append(replace(record, trace_id=None, span_id=None))
            elif not isinstance(record, NotATrip):
                found.append(record)
    return sorted(found, key=lambda each: (each.session.id[16:], each.seq))


class Following:
    """`otel-kernel replay --follow` while it runs."""

    def __init__(self, receiver: Receiver, path: Path, state: Path, hold: float = 5) -> None:
        self.receiver = receiver
        command = [*COMMAND, "replay", "--follow", "--interval", "0.05", "--hold", hold, "--state", state]
        self.process = subprocess.Popen(
            [*map(str, command), "--otlp", receiver.endpoint("http/protobuf"), str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("OTEL_")},
        )

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds."""
        deadline = time.monotonic() + 120
        while not condition():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline, found_in(self.receiver)
            time.sleep(0.05)

    def end(self) -> tuple[int, str, list[str]]:
        """Stop it and return its exit code and what it said."""
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err.splitlines()
