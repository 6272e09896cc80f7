"""JSON lines: each an OTLP request, or a trip as `otel-kernel export` writes it; a file may hold both."""

from __future__ import annotations

import json
from collections.abc import Iterator

from otel_kernel.inputs import otlp_json, trip_json
from otel_kernel.inputs.problems import Problem
from otel_kernel.kinds import Stamped
from otel_kernel.mapping import NotATrip
from otel_kernel.records import Trip
from otel_kernel.texts import TextFiles


def read_line(
    line: bytes, where: str, texts: TextFiles | None = None
) -> Iterator[Trip | Stamped | NotATrip | Problem]:
    """Yield what one line stands for, and a problem for each part of it that is lost.

    Args:
        line: what stands between two newlines; a blank line holds nothing.
        where: names the line in problems.
        texts: where to look for texts that a line does not carry whole.
    """
    if not line or line.isspace():
        return
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        yield Problem(where, f"malformed JSON: {error.msg} at column {error.colno}", is_whole=True)
        return
    except (ValueError, RecursionError) as error:
        yield Problem(where, f"malformed JSON: {error}", is_whole=True)
        return
    if trip_json.is_trip(value):
        yield trip_json.read_trip(value, where, texts)
    else:
        yield from otlp_json.read_request(value, where, texts)
