"""Fork writers, one for each line of input, and acknowledge on its pipe what each has written."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from example_trips import a_record, an_unfinished_trip, other_session

from otel_kernel.recording.writer import RecordingSink


def write(path: Path, number: int, acknowledge: int) -> None:
    sink = RecordingSink(path)
    session = other_session(number)
    seq = 0
    while True:
        sink.started(an_unfinished_trip(seq, session=session))
        os.write(acknowledge, f"start {seq}\n".encode())
        sink.finished(a_record(seq, session=session, source=f"text {number} {seq}"))
        os.write(acknowledge, f"end {seq}\n".encode())
        seq += 1


def main() -> None:
    path = Path(sys.argv[1])
    for line in sys.stdin:
        number, pipe = line.split()
        pid = os.fork()
        if pid == 0:
            write(path, int(number), os.open(pipe, os.O_WRONLY))
        print(pid, flush=True)
        os.waitpid(pid, 0)


main()
