"""Fork once at every step of a write, as a signal handler may; print failed children and steps."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType

from example_trips import a_record, other_session

from otel_kernel.recording.writer import RecordingSink

sink = RecordingSink(Path(sys.argv[1]))
sink.finished(a_record(0))
parent = os.getpid()
failed = 0


def fork(seq: int) -> None:
    """Fork a child that writes a trip in the middle of its parent's and goes no further."""
    global failed
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.alarm(20)
            sink.finished(a_record(seq, session=other_session(1)))
            status = 0
        finally:
            os._exit(status)
    failed += os.waitpid(pid, 0)[1] != 0


def write_with_fork_at(step: int, seq: int) -> bool:
    """Write a trip and fork at this step of it; return whether there is such a step."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += 1
        if count == step:
            sys.setprofile(None)
            fork(seq)

    sys.setprofile(profile)
    try:
        sink.finished(a_record(seq, source=f"text {seq}"))
    finally:
        sys.setprofile(None)
    return count >= step


seq = 1
while write_with_fork_at(step=seq, seq=seq):
    seq += 1
print(failed, seq)
