"""A trip as rows of the tables, and back: exact both ways."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from otel_kernel import semconv
from otel_kernel.recording import schema
from otel_kernel.records import (
    Abandoned,
    AttributeValue,
    CompilationOutcome,
    KernelCacheKey,
    Session,
    Text,
    TextDigest,
    Trip,
    TruncatedText,
    hex128,
)

_FIRST_ATTRIBUTE: Final = len(schema.FIELD_COLUMNS)
_ATTRIBUTES: Final = tuple((name, semconv.ATTRIBUTES[name].type) for name in schema.ATTRIBUTE_COLUMNS)
_PLACES: Final = {name: (place, kind) for place, (name, kind) in enumerate(_ATTRIBUTES)}
_FAMILY_COLUMNS: Final = {semconv.KEY_COMPONENT: str, semconv.STAGE: int}


@dataclass(frozen=True, slots=True)
class TripRows:
    """One trip, ready to be inserted: values in the order of the columns."""

    trip: tuple[object, ...]
    components: list[tuple[str, int, str, AttributeValue]]
    stages: list[tuple[str, int, str, AttributeValue]]
    texts: list[tuple[str, str]]


def to_rows(trip: Trip) -> TripRows:
    """Return the rows of a trip."""
    session, seq = trip.session.id, trip.seq
    row: list[object] = [None] * len(_ATTRIBUTES)
    families: dict[str, list[tuple[str, int, str, AttributeValue]]] = {name: [] for name in _FAMILY_COLUMNS}
    other: dict[str, AttributeValue] = {}
    for name, value in trip.attributes.items():
        place = _PLACES.get(name)
        if place is not None and type(value) is place[1]:
            row[place[0]] = value
            continue
        for prefix, kind in _FAMILY_COLUMNS.items():
            if name.startswith(prefix) and type(value) is kind:
                families[prefix].append((session, seq, name[len(prefix) :], value))
                break
        else:
            other[name] = value
    texts: list[tuple[str, str]] = []
    *ir, ir_prefix = _text_columns(trip.ir, texts)
    *source, source_prefix = _text_columns(trip.source, texts)
    key = trip.key
    return TripRows(
        trip=(
            session,
            seq,
            trip.parent_seq,
            trip.runtime,
            trip.layer,
            trip.kernel,
            trip.started_ns,
            trip.duration_ns,
            trip.outcome and trip.outcome.value,
            trip.abandoned and trip.abandoned.value,
            trip.error_type,
            trip.message,
            key and hex128(key.id),
            key and hex128(key.build_id),
            trip.trace_id,
            trip.span_id,
            *ir,
            *source,
            *row,
            json.dumps(other, ensure_ascii=False) if other else None,
            ir_prefix,
            source_prefix,
        ),
        components=families[semconv.KEY_COMPONENT],
        stages=families[semconv.STAGE],
        texts=texts,
    )


def _text_columns(text: Text, texts: list[tuple[str, str]]) -> tuple[object, ...]:
    """Return kept, sha256, size and prefix of a text; add it to `texts` if it is whole."""
    if text is None:
        return None, None, None, None
    if isinstance(text, str):
        digest = TextDigest.of(text)
        texts.append((digest.sha256, text))
        return "whole", digest.sha256, digest.size, None
    if isinstance(text, TruncatedText):
        return "prefix", text.sha256, text.size, text.prefix
    return "digest", text.sha256, text.size, None


def from_rows(
    session: Session,
    row: Sequence[Any],
    components: Iterable[tuple[str, str]],
    stages: Iterable[tuple[str, int]],
    ir: str | None,
    source: str | None,
) -> Trip:
    """Return the trip that `to_rows` made the rows of.

    Args:
        session: what `sessions` says of it.
        row: all columns of `trips`.
        components: name and value.
        stages: name and duration in ns.
        ir: the text in `texts`, where `ir_kept` is `whole`.
        source: the same for the source.

    Raises:
        ValueError: the rows are those of no trip.
    """
    fields = dict(zip(schema.FIELD_COLUMNS, row, strict=False))
    other, ir_prefix, source_prefix = row[-len(schema.LONG_COLUMNS) :]
    attributes: dict[str, AttributeValue] = {
        name: kind(value)
        for (name, kind), value in zip(_ATTRIBUTES, row[_FIRST_ATTRIBUTE:], strict=False)
        if value is not None
    }
    attributes.update((semconv.KEY_COMPONENT + name, value) for name, value in components)
    attributes.update((semconv.STAGE + name, value) for name, value in stages)
    if other is not None:
        attributes.update(json.loads(other))
    key_id, build_id, outcome = fields["key_id"], fields["key_build_id"], fields["outcome"]
    abandoned = fields["abandoned"]
    return Trip(
        session=session,
        seq=fields["seq"],
        parent_seq=fields["parent_seq"],
        runtime=fields["runtime"],
        layer=fields["layer"],
        kernel=fields["kernel"],
        started_ns=fields["started_ns"],
        duration_ns=fields["duration_ns"],
        outcome=None if outcome is None else CompilationOutcome(outcome),
        key=None if key_id is None else KernelCacheKey.from_hex(id=key_id, build_id=build_id),
        ir=_text("ir", fields, ir, ir_prefix),
        source=_text("source", fields, source, source_prefix),
        abandoned=None if abandoned is None else Abandoned(abandoned),
        error_type=fields["error_type"],
        message=fields["message"],
        trace_id=fields["trace_id"],
        span_id=fields["span_id"],
        attributes=attributes,
    )


def _text(name: str, fields: dict[str, Any], whole: str | None, prefix: str) -> Text:
    kept, sha256, size = fields[f"{name}_kept"], fields[f"{name}_sha256"], fields[f"{name}_size"]
    if kept is None:
        return None
    if kept == "whole":
        if whole is None:
            raise ValueError(f"the text of {name} with sha256 {sha256} is missing")
        return whole
    return TextDigest(sha256, size) if kept == "digest" else TruncatedText(prefix, sha256, size)
