"""Sets of moments."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from otel_kernel.report.intervals import Interval, length, union, without

INTERVALS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)))


def moments(intervals: list[Interval]) -> set[int]:
    return {moment for start, end in intervals for moment in range(start, end)}


@given(INTERVALS)
def test_a_union_is_the_same_moments_each_once(intervals: list[Interval]) -> None:
    merged = union(intervals)

    assert moments(intervals) == moments(merged)
    assert len(moments(intervals)) == length(merged)
    assert all(before[1] < after[0] for before, after in pairwise(merged))


@given(INTERVALS, INTERVALS)
def test_what_is_left_is_in_the_first_and_not_in_the_second(
    these: list[Interval], others: list[Interval]
) -> None:
    left = without(union(these), union(others))

    assert moments(these) - moments(others) == moments(left)
    assert len(moments(left)) == length(left)
