"""Writes the name of each signal that it receives to `received`, and ends with 7 after the last one named.

Usage: receiving.py [--to-group] SIGNAL... LAST; it is ready when the file is there. With `--to-group` it
sends the first signal itself, to its process group.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

RECEIVED = Path("received")


def main(arguments: list[str]) -> None:
    to_group = arguments[0] == "--to-group"
    awaited = [signal.Signals[name] for name in arguments[to_group:]]
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    RECEIVED.touch()
    if to_group:
        os.killpg(0, awaited[0])
    names: list[str] = []
    while awaited[-1].name not in names:
        names.append(signal.Signals(signal.sigwaitinfo(awaited).si_signo).name)
        RECEIVED.write_text(" ".join(names))
    sys.exit(7)


main(sys.argv[1:])
