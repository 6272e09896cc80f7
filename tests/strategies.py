"""Trips as hypothesis draws them, for every test that sends a trip somewhere and back."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from otel_kernel import semconv
from otel_kernel.mapping import CONTEXT_ATTRIBUTES
from otel_kernel.records import (
    INT64_MAX,
    UINT128_MAX,
    Abandoned,
    AttributeValue,
    CompilationOutcome,
    KernelCacheKey,
    Session,
    Text,
    TextDigest,
    Trip,
    TruncatedText,
    escape,
)

STATES = ("record", "failed", "abandoned", "unfinished")

_AWKWARD = ("\0", "a\0b", escape("\ud800"), escape("x\udfffy"), "\x7f\ufffe", "\U0001f9ff", "'; --", "\r\n")

counts = st.integers(0, INT64_MAX) | st.sampled_from((0, 1, 2**31, 2**53 + 1, INT64_MAX))
words = st.text(min_size=1, max_size=20) | st.sampled_from(_AWKWARD)
texts = st.just("") | st.text(max_size=60) | st.sampled_from(_AWKWARD)
ids128 = st.integers(0, UINT128_MAX) | st.sampled_from(
    (0, 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**127, UINT128_MAX)
)
keys = st.builds(KernelCacheKey, id=ids128, build_id=ids128)
digests = st.builds(TextDigest.of, texts)
sessions = st.builds(
    Session, id=st.integers(0, UINT128_MAX).map("{:032x}".format), run=ids128.map("{:032x}".format)
)
family_names = st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=1, max_size=12)


@st.composite
def cut_texts(draw: st.DrawFn) -> TruncatedText:
    """Draw a text of which a pipeline has taken the end, or all of it."""
    whole = draw(words)
    digest = TextDigest.of(whole)
    return TruncatedText(whole[: draw(st.integers(0, len(whole) - 1))], digest.sha256, digest.size)


kernel_texts: st.SearchStrategy[Text] = st.none() | texts | digests | cut_texts()


def values_of(definition: semconv.Attribute) -> st.SearchStrategy[AttributeValue]:
    """Return the strategy for the values that an attribute may have."""
    if definition.values:
        return st.sampled_from(definition.values)
    if definition.type is bool:
        return st.booleans()
    return texts if definition.type is str else counts | st.integers(-INT64_MAX - 1, INT64_MAX)


@st.composite
def attributes(draw: st.DrawFn) -> dict[str, AttributeValue]:
    """Draw attributes of every kind: known ones, families, and names of a version to come."""
    optional = {name: values_of(semconv.ATTRIBUTES[name]) for name in CONTEXT_ATTRIBUTES}
    drawn = draw(st.fixed_dictionaries({}, optional=optional))
    for prefix, family in semconv.FAMILIES.items():
        kind: st.SearchStrategy[AttributeValue] = texts if family.type is str else counts
        members = draw(st.dictionaries(family_names, kind, max_size=semconv.MAX_FAMILY))
        drawn.update((prefix + name, value) for name, value in members.items())
    values: st.SearchStrategy[AttributeValue] = st.booleans() | counts | texts
    unknown = draw(st.dictionaries(family_names, values, max_size=3))
    drawn.update((f"{semconv.NAMESPACE}future.{name}", value) for name, value in unknown.items())
    return drawn


@st.composite
def trips(draw: st.DrawFn, states: Sequence[str] = STATES) -> Trip:
    """Draw a trip of one of these states, as the core could have made it."""
    state = draw(st.sampled_from(states))
    outcome = draw(st.sampled_from(CompilationOutcome)) if state == "record" else None
    seq = draw(counts)
    spanned = draw(st.booleans())
    return Trip(
        session=draw(sessions),
        seq=seq,
        parent_seq=draw(st.none() | st.integers(0, seq - 1)) if seq else None,
        runtime=draw(words),
        layer=draw(words),
        kernel=draw(words),
        started_ns=draw(counts),
        duration_ns=None if state == "unfinished" else draw(counts),
        outcome=outcome,
        key=draw(st.none() | keys),
        ir=None if outcome is CompilationOutcome.LOADED else draw(kernel_texts),
        source=draw(kernel_texts),
        abandoned=draw(st.sampled_from(Abandoned)) if state == "abandoned" else None,
        error_type=draw(words) if state == "failed" else None,
        message=draw(st.none() | words) if state == "failed" else None,
        trace_id=draw(ids128.map("{:032x}".format)) if spanned else None,
        span_id=draw(st.integers(0, 2**64 - 1).map("{:016x}".format)) if spanned else None,
        attributes=draw(attributes()),
    )
