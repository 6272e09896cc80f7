"""No input makes a decoder crash, hang or fill the memory: what hypothesis makes up, and what a fuzzer has found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from fuzz.decoders import DECODERS

CORPUS = Path(__file__).parent / "corpus"
SEEDS = {name: [path.read_bytes() for path in sorted((CORPUS / name).iterdir())] for name in DECODERS}

NAMES = st.sampled_from(
    ["resourceSpans", "scopeSpans", "spans", "attributes", "key", "value", "stringValue", "intValue", "traceId",
     "spanId", "status", "message", "data", "tags", "type", "traceID", "spanID", "startTime", "trace", "batches",
     "span", "scope", "start", "kvlistValue", "arrayValue", "values", "bytesValue", "session", "seq"]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("1" * 5000)
JSON: st.SearchStrategy[object] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
"""What a decoder may find where it looks for something else."""

MAX_KIB = 3 * 1024 * 1024
"""Address space of a process that decodes them all, one after the other; the largest has 50 MB of JSON."""


@st.composite
def damaged(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """Draw an input that is right but for some bytes that are changed, gone, doubled or new."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 6))):
        start, length = draw(st.integers(0, len(data))), draw(st.integers(0, 20))
        new = draw(st.binary(max_size=20) | st.just(bytes(data[start : start + length]) * 2))
        data[start : start + length] = new
    return bytes(data)


@pytest.mark.parametrize("name", DECODERS)
def test_what_a_fuzzer_has_found_is_read_or_said_to_be_wrong(name: str) -> None:
    for seed in SEEDS[name]:
        DECODERS[name](seed)


@pytest.mark.parametrize("name", DECODERS)
def test_damaged_input_is_read_or_said_to_be_wrong(name: str) -> None:
    @settings(deadline=None, max_examples=100)
    @given(damaged(SEEDS[name]) | st.binary(max_size=200))
    def check(data: bytes) -> None:
        DECODERS[name](data)

    check()


@pytest.mark.parametrize("name", ["content", "line", "jaeger", "jaeger-legacy", "tempo", "row"])
def test_json_of_any_shape_is_read_or_said_to_be_wrong(name: str) -> None:
    @settings(deadline=None, max_examples=100)
    @given(JSON)
    def check(value: object) -> None:
        DECODERS[name](json.dumps(value).encode())

    check()


def many_attributes_protobuf() -> bytes:
    request = TracesData()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    for number in range(1_000_000):
        span.attributes.add(key=f"compute.kernel.{number}")
    return request.SerializeToString()


def many_attributes_json(outer: str) -> bytes:
    attributes = ",".join('{"key":"compute.kernel.a","value":{"intValue":"1"}}' for _ in range(1_000_000))
    return (outer % f'{{"scopeSpans":[{{"spans":[{{"attributes":[{attributes}]}}]}}]}}').encode()


def many_tags() -> bytes:
    tags = ",".join('{"key":"a","type":"string","value":"b"}' for _ in range(1_000_000))
    return f'{{"data":[{{"spans":[{{"traceID":"1","spanID":"1","startTime":1,"tags":[{tags}]}}]}}]}}'.encode()


def many_columns() -> bytes:
    attributes = ",".join(f'"a{number}":"b"' for number in range(1_000_000))
    return (
        f'{{"attributes":{{{attributes}}},"trace":"","span":"","scope":"","message":"","start":1}}'.encode()
    )


MANY: dict[str, Callable[[], bytes]] = {
    "content": lambda: many_attributes_json('{"resourceSpans":[%s]}'),
    "line": lambda: many_attributes_json('{"resourceSpans":[%s]}'),
    "protobuf": many_attributes_protobuf,
    "jaeger": lambda: many_attributes_json('{"resourceSpans":[%s]}'),
    "jaeger-legacy": many_tags,
    "tempo": lambda: many_attributes_json('{"trace":{"resourceSpans":[%s]}}'),
    "row": many_columns,
}


def decode_many() -> None:
    for name, make in MANY.items():
        DECODERS[name](make())


def test_a_million_attributes_stay_within_memory() -> None:
    code = "from fuzz.test_decoders import decode_many; decode_many()"
    done = subprocess.run(
        ["sh", "-c", f"ulimit -v {MAX_KIB} && exec '{sys.executable}' -c '{code}'"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )

    assert 0 == done.returncode, done.stderr.decode()[-2000:]


DEEP = [
    b'{"resourceSpans":' * 100_000,
    b"[" * 1_000_000,
    b'{"data":' + b"[" * 1_000_000,
    b'{"trace":' * 100_000,
]


@pytest.mark.parametrize("name", DECODERS)
def test_deep_nesting_is_no_fault(name: str) -> None:
    for data in DEEP:
        DECODERS[name](data)


def deep_value(depth: int) -> bytes:
    return b'{"arrayValue":{"values":[' * depth + b'{"intValue":1}' + b"]}}" * depth


@pytest.mark.parametrize("depth", [10, 400, 900])
def test_a_deep_value_is_no_fault(depth: int) -> None:
    attributes = b'[{"key":"compute.kernel.role","value":' + deep_value(depth) + b"}]"
    DECODERS["line"](b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":' + attributes + b"}]}]}]}")
