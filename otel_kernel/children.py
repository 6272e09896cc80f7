"""Notices Python processes that a program starts with an environment in which they cannot boot.

Such a child leaves no trace of its own, so only the process that starts it can tell. Imported when the
program imports `subprocess`, and only under `otel-kernel run`.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys

from otel_kernel.boot import BOOT_VARIABLE, STRIPPED, leave_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def watch() -> None:
    """Look at the arguments of every `subprocess.Popen` from here on; each works as it did.

    Not by wrapt, which costs more to import than many a program needs to start. Not by an audit hook, which
    the interpreter would call for `open`, `id` and many others too, on the launch path as anywhere.
    """
    original = subprocess.Popen.__init__
    code = original.__code__
    names = code.co_varnames[: code.co_argcount]

    @functools.wraps(original)
    def init(*args: Any, **kwargs: Any) -> None:
        # A call that raises here is one that Popen refuses too, with its own words.
        with contextlib.suppress(Exception):
            _notice({**dict(zip(names, args, strict=False)), **kwargs})
        original(*args, **kwargs)

    subprocess.Popen.__init__ = init  # type: ignore[method-assign] # the same signature, by `wraps`


def _notice(call: Mapping[str, Any]) -> None:
    env = os.environ if call.get("env") is None else call["env"]
    if BOOT_VARIABLE in map(os.fsdecode, env):
        return
    command: Any = call["args"]
    if isinstance(command, (str, bytes)):
        command = command.split(maxsplit=1)[0] if call.get("shell") else command
    elif not hasattr(command, "__fspath__"):
        command = command[0]
    executable = os.fsdecode(call.get("executable") or command)
    if _is_python(executable):
        leave_word(STRIPPED, executable)


def _is_python(executable: str) -> bool:
    stem = executable.rpartition("/")[2].rstrip("0123456789.t")  # as in python3.14t
    return stem in ("python", "pypy") or executable == sys.executable
