"""Every decoder of what comes from outside, as a function of bytes, for hypothesis and for a fuzzer."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from otel_kernel.inputs import jaeger, otlp_json, otlp_protobuf, tempo
from otel_kernel.inputs.clickhouse import read_row
from otel_kernel.inputs.content import read_content
from otel_kernel.inputs.json_lines import read_line
from otel_kernel.inputs.problems import Problem
from otel_kernel.kinds import Stamped
from otel_kernel.mapping import NotATrip
from otel_kernel.receiving import bodies
from otel_kernel.records import Trip


def _all(found: Iterable[object]) -> None:
    for each in found:
        assert isinstance(each, (Trip, Stamped, NotATrip, Problem)), type(each)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _content(data: bytes) -> None:
    _all(read_content(io.BytesIO(data), "fuzz"))


def _line(data: bytes) -> None:
    _all(read_line(data, "fuzz:1"))


def _protobuf(data: bytes) -> None:
    _all(otlp_protobuf.read_request(data, "fuzz"))


def _legacy(data: bytes) -> None:
    _all(jaeger.read_legacy(_json(data), "fuzz"))


def _jaeger(data: bytes) -> None:
    answer = jaeger.unseen(_json(data), set(), is_legacy=False)
    _all(otlp_json.read_request(answer, "fuzz"))


def _tempo(data: bytes) -> None:
    answer = _json(data)
    if otlp_json.is_object(answer):
        _all(otlp_json.read_request(tempo.request_of(answer), "fuzz"))


def _row(data: bytes) -> None:
    _all(read_row(data, "fuzz"))


def _body(data: bytes) -> None:
    for encoding in bodies.ENCODINGS:
        with suppress(ValueError):
            assert len(bodies.unpack(data, encoding, 1000)) <= 1000


DECODERS: Final[dict[str, Callable[[bytes], None]]] = {
    "content": _content,
    "line": _line,
    "protobuf": _protobuf,
    "jaeger": _jaeger,
    "jaeger-legacy": _legacy,
    "tempo": _tempo,
    "row": _row,
    "body": _body,
}
"""By name; each returns, or raises what is a fault of ours."""
