"""Shows on standard error how far a long piece of work is: on a terminal, and only once it takes a while."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from otel_kernel.inputs import Input, Problem
from otel_kernel.records import Trip

PATIENCE: Final = 0.5
"""Seconds for which nothing is shown."""

_BETWEEN: Final = 0.1
"""Seconds from one look at the clock that redraws to the next."""

_T = TypeVar("_T")


def reading(found: Input) -> Iterable[Trip | Problem]:
    """Return what to iterate over instead of an INPUT, with a bar of the bytes that are read."""
    return shown(found, "reading", lambda: found.size, lambda _: found.position)


def shown(
    items: Iterable[_T],
    what: str,
    size: Callable[[], int],
    position: Callable[[int], int] = lambda done: done,
) -> Iterable[_T]:
    """Return what to iterate over instead of `items`, with a bar.

    Args:
        items: takes long to iterate over.
        what: names the work.
        size: returns where the bar ends, 0 if that is not known; called if the bar is shown at all.
        position: returns where the bar is, from the number of items that are done.
    """
    stderr = sys.stderr
    is_terminal = stderr is not None and stderr.isatty()  # None where it is closed
    return _with_bar(items, what, size, position) if is_terminal else items


def _with_bar(
    items: Iterable[_T], what: str, size: Callable[[], int], position: Callable[[int], int]
) -> Iterator[_T]:
    source = iter(items)
    next_look = time.monotonic() + PATIENCE
    done = 0
    for item in source:
        yield item
        done += 1
        if time.monotonic() >= next_look:
            break
    else:
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    # No thread of its own, and nothing is left of it: what follows is printed as if it had not been there.
    with Progress(
        *columns, console=Console(stderr=True), auto_refresh=False, transient=True, redirect_stdout=False
    ) as progress:
        task = progress.add_task(what, total=size() or None)
        for item in source:
            yield item
            done += 1
            now = time.monotonic()
            if now >= next_look:
                progress.update(task, completed=position(done), refresh=True)
                next_look = now + _BETWEEN
