"""Our own faults: caught, logged once per cause, never let into the program."""

from __future__ import annotations

import contextlib
import logging
import sys
import traceback
from collections.abc import Callable
from typing import Any

logger = logging.getLogger("otel_kernel")

reraise = False
"""Set by our own tests only, so that a fault shows as a failure."""

_seen: set[tuple[str, str, str]] = set()


class UserError(Exception):
    """What the user can put right: the message is one line and holds no text of a kernel."""


def caught(where: str) -> None:
    """Log the exception being handled, once per cause; call it inside `except Exception` only."""
    error = sys.exc_info()[1]
    if error is None:
        return
    if reraise:
        raise error
    if isinstance(error, UserError):
        _say_once(("", type(error).__qualname__, str(error)), logging.ERROR, "%s", error)
        return
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    line = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "?"
    cause = (where, type(error).__qualname__, line)
    said = _say_once(
        cause,
        logging.WARNING,
        "%s failed in otel-kernel (%s at %s); the program goes on, its telemetry may lack a part. "
        "Said once; the frames are at level DEBUG.",
        where,
        type(error).__name__,
        line,
    )
    if said:
        # No traceback as Python prints it: messages and lines of code may hold the text of a kernel.
        _log(logging.DEBUG, "frames of the fault in %s: %s", where, _frames(error))


def _say_once(cause: tuple[str, str, str], level: int, message: str, *parts: object) -> bool:
    if cause in _seen:
        return False
    _seen.add(cause)
    _log(level, message, *parts)
    return True


def _log(level: int, message: str, *parts: object) -> None:
    # A filter or a handler of the program's that raises must not reach it through us.
    with contextlib.suppress(Exception):
        logger.log(level, message, *parts)


def _frames(error: BaseException) -> str:
    return " > ".join(
        f"{frame.f_code.co_name} ({frame.f_code.co_filename}:{line})"
        for frame, line in traceback.walk_tb(error.__traceback__)
    )


def guarded(where: str, function: Callable[..., object]) -> Callable[..., None]:
    """Return `function` as a runtime may call it: what it raises is logged and goes no further."""

    def call(*args: Any, **kwargs: Any) -> None:
        try:
            function(*args, **kwargs)
        except Exception:
            caught(where)

    return call
