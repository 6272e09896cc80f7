"""Fork children that each write a trip, while another thread writes without a pause."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from pathlib import Path

from example_trips import a_record, an_unfinished_trip, other_session

from otel_kernel.recording.writer import RecordingSink

FORKS = 60

warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 a fork beside threads is one
sink = RecordingSink(Path(sys.argv[1]))
enough = threading.Event()
written = 0


def write() -> None:
    global written
    while not enough.is_set():
        sink.started(an_unfinished_trip(written))
        sink.finished(a_record(written))
        written += 1


writer = threading.Thread(target=write)
writer.start()
failed = 0
for number in range(FORKS):
    pid = os.fork()
    if pid == 0:
        signal.alarm(15)  # a child that hangs dies of it, and is counted
        sink.finished(a_record(session=other_session(number)))
        os._exit(0)
    failed += os.waitpid(pid, 0)[1] != 0
    if failed:
        break
enough.set()
writer.join()
print(failed, written)
