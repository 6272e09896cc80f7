"""Sets of moments, each a list of half-open intervals from and to a time in ns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from otel_kernel.records import INT64_MAX

Interval: TypeAlias = "tuple[int, int]"


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the same moments in order, without overlaps and empty intervals."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def without(these: Iterable[Interval], others: Iterable[Interval]) -> list[Interval]:
    """Return the moments of `these` that are not in `others`; both as `union` returns them."""
    left: list[Interval] = []
    cuts = list(others)
    first = 0
    for start, end in these:
        while first < len(cuts) and cuts[first][1] <= start:
            first += 1
        at = start
        for cut_start, cut_end in cuts[first:]:
            if cut_start >= end:
                break
            if at < cut_start:
                left.append((at, cut_start))
            at = max(at, cut_end)
        if at < end:
            left.append((at, end))
    return left


def length(intervals: Iterable[Interval]) -> int:
    """Return the time in ns that intervals without overlaps take; at most INT64_MAX, as everywhere."""
    return min(INT64_MAX, sum(end - start for start, end in intervals))
