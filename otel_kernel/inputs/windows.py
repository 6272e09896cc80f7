"""All traces of a time, from an API that gives the first so many of those that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

_T = TypeVar("_T")


def in_windows(
    start_ns: int,
    end_ns: int,
    ask: Callable[[int, int], tuple[_T, bool]],
    smallest_ns: int,
    on_full: Callable[[int], None],
) -> Iterator[_T]:
    """Yield the answers for a time, which is halved wherever an answer is full: what is in it comes again.

    Args:
        start_ns: where the time starts, ns since the Unix epoch.
        end_ns: where it ends.
        ask: returns the answer for a time, and whether there may be more than it holds.
        smallest_ns: what the API tells apart; a time of this length is not halved.
        on_full: told where such a time starts whose answer is full all the same.
    """
    times = [(start_ns // smallest_ns * smallest_ns, -(-end_ns // smallest_ns) * smallest_ns)]
    while times:
        start, end = times.pop()
        answer, is_full = ask(start, end)
        yield answer
        if not is_full:
            continue
        if end - start <= smallest_ns:
            on_full(start)
            continue
        middle = start + (end - start) // smallest_ns // 2 * smallest_ns
        times += [(middle, end), (start, middle)]
