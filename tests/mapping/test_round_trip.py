from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from example_trips import a_record
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import trips

from mapping.carriers import CARRIERS, difference, span_of, with_ids
from otel_kernel import semconv
from otel_kernel.mapping import INLINE_LIMIT, to_attributes
from otel_kernel.records import UINT128_MAX, KernelCacheKey, Text, TextDigest, Trip, TruncatedText, escape
from otel_kernel.texts import TextFiles

FIVE_MEBIBYTES = 5 * 1024 * 1024
ALWAYS = {semconv.PROCESS_PID: 4711, semconv.THREAD_ID: 4712}
ENDED = ("record", "failed", "abandoned")


def _left(text: Text, inline_limit: int, texts: TextFiles | None) -> Text:
    """Return what must be left of a text at the end of the way."""
    if isinstance(text, TruncatedText) and texts is not None:
        return texts.get(text.sha256, text.size) or text  # the folder may hold what was cut elsewhere
    if not isinstance(text, str) or texts is not None:
        return text
    digest = TextDigest.of(text)
    return text if digest.size <= inline_limit else TruncatedText("", digest.sha256, digest.size)


@settings(deadline=None, max_examples=150)
@given(trips(ENDED), st.sampled_from([0, 3, 40, INLINE_LIMIT]), st.booleans())
def test_a_trip_comes_back_from_every_carrier(trip: Trip, inline_limit: int, keep_texts: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        texts = TextFiles(Path(folder)) if keep_texts else None
        sent = with_ids(trip)
        span = span_of(sent, inline_limit=inline_limit, texts=texts)
        expected = replace(
            sent,
            ir=_left(sent.ir, inline_limit, texts),
            source=_left(sent.source, inline_limit, texts),
        )

        assert 0 == span.dropped_attributes
        for name, carry in CARRIERS.items():
            assert "" == difference(expected, carry(span, texts)), name


BIG = {
    "ascii": "label 0:\n" * (FIVE_MEBIBYTES // 9 + 1),
    "wide": "\U0001f9ff" * (FIVE_MEBIBYTES // 4),
    "with NUL": "a\0" * (FIVE_MEBIBYTES // 2),
}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("text", BIG.values(), ids=BIG)
@pytest.mark.parametrize("kept", ["inline", "in a file", "nowhere"])
def test_a_text_of_five_mebibytes_comes_back_or_says_that_it_is_cut(
    tmp_path: Path, carrier: str, text: str, kept: Literal["inline", "in a file", "nowhere"]
) -> None:
    texts = TextFiles(tmp_path) if kept == "in a file" else None
    sent = with_ids(a_record(ir=text, source=text[1:], attributes=ALWAYS))
    inline_limit = 2**31 if kept == "inline" else INLINE_LIMIT
    span = span_of(sent, inline_limit=inline_limit, texts=texts)
    expected = replace(
        sent, ir=_left(sent.ir, inline_limit, texts), source=_left(sent.source, inline_limit, texts)
    )

    assert "" == difference(expected, CARRIERS[carrier](span, texts))


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("key_id", [0, 1, 2**64, UINT128_MAX])
@pytest.mark.parametrize("build_id", [0, 1, 2**63, UINT128_MAX])
def test_a_key_comes_back_at_its_extremes(carrier: str, key_id: int, build_id: int) -> None:
    sent = with_ids(replace(a_record(attributes=ALWAYS), key=KernelCacheKey(id=key_id, build_id=build_id)))

    assert "" == difference(sent, CARRIERS[carrier](span_of(sent), None))


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("text", ["", "\0", escape("a\ud800b"), "\ufffe\uffff", " \u2028\r\n"])
def test_an_awkward_text_comes_back(carrier: str, text: str) -> None:
    sent = with_ids(replace(a_record(ir=text, source=text, attributes=ALWAYS), kernel=f"shop.{text}"))

    assert "" == difference(sent, CARRIERS[carrier](span_of(sent), None))


def test_an_unfinished_trip_has_no_attributes_to_end_with() -> None:
    trip = replace(a_record(seq=7), duration_ns=None, outcome=None)

    with pytest.raises(ValueError, match=r"trip 7 of session 5{32} is unfinished"):
        span_of(with_ids(trip))


@pytest.mark.parametrize(("text", "limit"), [("", 0), ("abc", 3), ("\U0001f9ff", 4)])
def test_a_text_of_just_the_limit_in_bytes_is_inline_and_one_byte_more_is_not(text: str, limit: int) -> None:
    inline = to_attributes(a_record(ir=text), inline_limit=limit)
    longer = to_attributes(a_record(ir=text + "x"), inline_limit=limit)

    assert ("inline", text) == (inline[semconv.IR_LOCATION], inline[semconv.IR_TEXT])
    assert "none" == longer[semconv.IR_LOCATION]
    assert semconv.IR_TEXT not in longer


@pytest.mark.faults_logged
def test_a_text_that_cannot_be_kept_costs_the_text_and_not_the_trip(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "texts").write_text("a file in the place of the folder")
    texts = TextFiles(tmp_path / "texts")
    sent = with_ids(a_record(ir="ir", source="source", attributes=ALWAYS))
    span = span_of(sent, inline_limit=0, texts=texts)
    expected = replace(sent, ir=_left(sent.ir, 0, None), source=_left(sent.source, 0, None))

    assert "" == difference(expected, CARRIERS["readable span"](span, texts))
    (said,) = caplog.records
    assert f"keeping a text in {tmp_path / 'texts'} failed" in said.message
