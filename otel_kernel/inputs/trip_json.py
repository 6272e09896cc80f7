"""Trips as JSON, as `Trip.to_json` writes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, cast

from otel_kernel.inputs.problems import Problem
from otel_kernel.records import Text, Trip, TruncatedText
from otel_kernel.texts import TextFiles

_IDENTITY: Final = {"session", "seq"}
"""Members of a trip that no OTLP request has."""


def is_trip(value: object) -> bool:
    """Whether parsed JSON is meant to be a trip."""
    return isinstance(value, dict) and cast("dict[str, Any]", value).keys() >= _IDENTITY


def read_trip(value: object, where: str, texts: TextFiles | None = None) -> Trip | Problem:
    """Return the trip, or the problem that it is none.

    Args:
        value: parsed JSON.
        where: names it in the problem.
        texts: where to look for texts that it does not carry whole.
    """
    try:
        trip = Trip.from_json(value)
    except (ValueError, TypeError) as error:
        return Problem(where, f"malformed trip: {error}")
    if texts is None:
        return trip
    ir, source = _whole(trip.ir, texts), _whole(trip.source, texts)
    return trip if ir is trip.ir and source is trip.source else replace(trip, ir=ir, source=source)


def _whole(text: Text, texts: TextFiles) -> Text:
    if not isinstance(text, TruncatedText):
        return text
    found = texts.get(text.sha256, text.size)
    return text if found is None else found
