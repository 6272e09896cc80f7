"""A child that is forked while another thread holds the compiler's lock, with us or without us."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable

from conformance.harness import value, watch
from numba import njit
from numba.core.compiler_lock import global_compiler_lock

if sys.argv[1] == "with":
    watch()


@njit
def compiled(x: int) -> int:
    return x + 1


@njit
def not_compiled(x: int) -> int:
    return x + 2


def end_of(call: Callable[[], object], seconds: int) -> int:
    """Return how a child that makes this call ends: 7, or -SIGALRM where it hangs."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(seconds)
        call()
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


compiled(1)
held, done = threading.Event(), threading.Event()


def hold() -> None:
    with global_compiler_lock:
        held.set()
        done.wait()


thread = threading.Thread(target=hold)
thread.start()
held.wait()
value("launch", end_of(lambda: compiled(1), seconds=60))
value("compile", end_of(lambda: not_compiled(1), seconds=1))
done.set()
thread.join()
