"""Limits of the SDK drop and cut attributes without a mark on the span; a reader must see it all the same."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from strategies import trips

from mapping.carriers import CARRIERS, Found, complaint, full_trip, span_of, with_ids
from otel_kernel import semconv
from otel_kernel.mapping import INLINE_LIMIT, Reject, to_attributes
from otel_kernel.records import Trip, TruncatedText
from otel_kernel.texts import TextFiles

ENDED = ("record", "failed", "abandoned")
LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 1000)

counts = st.integers(0, 130)
lengths = st.integers(0, 130) | st.sampled_from(LENGTHS)
limits = st.one_of(
    st.builds(SpanLimits, max_span_attributes=counts),
    st.builds(SpanLimits, max_attributes=counts),
    st.builds(SpanLimits, max_span_attribute_length=lengths),
    st.builds(SpanLimits, max_attribute_length=lengths),
    st.builds(SpanLimits, max_span_attributes=counts, max_span_attribute_length=lengths),
)


def _all_ways(
    trip: Trip, limits: SpanLimits, inline_limit: int = INLINE_LIMIT, texts: TextFiles | None = None
) -> dict[str, Found]:
    span = span_of(trip, inline_limit=inline_limit, texts=texts, limits=limits)
    return {name: carry(span, texts) for name, carry in CARRIERS.items()}


@settings(deadline=None, max_examples=400)
@given(trips(ENDED), limits, st.sampled_from([0, 3, 40, INLINE_LIMIT]), st.booleans())
def test_a_trip_under_any_limit_is_whole_or_owns_up_to_what_it_lost(
    trip: Trip, limits: SpanLimits, inline_limit: int, keep_texts: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        texts = TextFiles(Path(folder)) if keep_texts else None
        sent = with_ids(trip)
        for carrier, found in _all_ways(sent, limits, inline_limit, texts).items():
            assert "" == complaint(sent, found), carrier


@pytest.mark.parametrize("count", range(len(to_attributes(full_trip()))))
def test_a_full_trip_with_any_number_of_attributes_dropped_names_them(count: int) -> None:
    trip = full_trip()
    for found in _all_ways(trip, SpanLimits(max_span_attributes=count)).values():
        assert isinstance(found, Reject)
        assert found.reason.startswith("lost: ")
        assert semconv.DURATION_NS in found.reason
        assert "" == complaint(trip, found)


@pytest.mark.parametrize("length", range(200))
def test_a_full_trip_cut_at_any_length_is_whole_or_names_what_was_cut(length: int) -> None:
    trip = full_trip()
    longest = max(
        len(value)
        for name, value in to_attributes(trip).items()
        if isinstance(value, str) and name not in (semconv.IR_TEXT, semconv.SOURCE_TEXT)
    )
    for found in _all_ways(trip, SpanLimits(max_span_attribute_length=length)).values():
        assert "" == complaint(trip, found)
        assert (length < longest) is isinstance(found, Reject)


def test_a_text_cut_by_a_limit_comes_back_as_truncated_and_from_a_file_whole(tmp_path: Path) -> None:
    trip = full_trip()
    assert isinstance(trip.ir, str)
    limits = SpanLimits(max_attribute_length=len(trip.ir) - 1)
    texts = TextFiles(tmp_path)
    for found in _all_ways(trip, limits).values():
        assert isinstance(found, Trip)
        assert isinstance(found.ir, TruncatedText)
        assert trip.ir[:-1] == found.ir.prefix
    for found in _all_ways(trip, limits, 0, texts).values():
        assert trip == found


def test_the_sdk_drops_the_oldest_attribute_and_setting_one_again_makes_it_the_newest() -> None:
    provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=3), shutdown_on_exit=False)
    span = provider.get_tracer("test").start_span("test", attributes={"a": 1, "b": 2})
    span.set_attributes({"c": 3, "a": 4, "d": 5})
    kept = getattr(span, "attributes")  # noqa: B009 - the API's span has none

    assert {"c": 3, "a": 4, "d": 5} == dict(kept)
    assert ["c", "a", "d"] == list(kept)
