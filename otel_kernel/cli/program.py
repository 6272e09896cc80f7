"""Runs a program as a child process, as if it had been started without us: signals, stops and its end.

The program stays in our process group and has our terminal, input and output. It outlives us only if we are
killed by SIGKILL, which nobody can pass on.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Mapping

# What the kernel sends to a process for its own faults, and what cannot be waited for.
_OURS = {
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGKILL,
    signal.SIGSEGV,
    signal.SIGSTOP,
    signal.SIGSYS,
    signal.SIGTRAP,
    signal.SIGCONT,
}
_AWAITED = signal.valid_signals() - _OURS

# Ignored by our own interpreter since it started, which a child would inherit.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def run(command: tuple[str, ...], environment: Mapping[str, str]) -> int:
    """Run `command` to its end and return its wait status.

    Raises:
        OSError: the program cannot be started.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would take the status with it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    try:
        pid = os.posix_spawnp(
            command[0], command, environment, setsigmask=before, setsigdef=_IGNORED_BY_PYTHON
        )
        status = _wait(pid)
        while signal.sigtimedwait(_AWAITED, 0):
            pass  # a second ^C for a program that the first one has ended
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return status


def _wait(pid: int) -> int:
    while True:
        received = signal.sigwaitinfo(_AWAITED)
        if received.si_signo != signal.SIGCHLD:
            if _is_for_us_alone(received, pid):
                os.kill(pid, received.si_signo)
            continue
        ended, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if not ended:
            continue
        if not os.WIFSTOPPED(status):
            return status
        if os.WSTOPSIG(status) != signal.SIGSTOP:
            # Stopped by the terminal, as by ^Z: the shell waits for us to stop, and wakes both.
            os.kill(os.getpid(), signal.SIGSTOP)
            os.kill(pid, signal.SIGCONT)


def _is_for_us_alone(received: signal.struct_siginfo, program: int) -> bool:
    """Whether the program has not received this signal too.

    The terminal sends ^C, ^Z and the like to all of its foreground process group at once, and only what the
    kernel sends has a positive code: `kill` has zero, also when it is typed at the same terminal. A hangup
    goes to the leader of the session alone. A program that signals its own group includes us.
    """
    if received.si_code > 0:
        return received.si_signo == signal.SIGHUP and os.getsid(0) == os.getpid()
    return received.si_pid != program


def end_like(status: int) -> int:
    """Die of the signal that `status` tells of, or return the exit code that it tells of."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue  # closed by whoever started us
        try:
            stream.flush()
        except OSError:
            # Nobody reads it any more. Our interpreter would fail over it again, with an exit code of its own.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    number = -code
    # The program has left a core if it wanted to; ours would be in its place.
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number  # the first process of a container, which no signal ends, says it like a shell
