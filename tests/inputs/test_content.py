"""A file or a stream gives the same trips however it is packed, and says what is lost of it."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from backports import zstd
from example_trips import a_record
from hypothesis import given, settings
from hypothesis import strategies as st
from mapping.carriers import span_of, with_ids
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from strategies import trips

from otel_kernel import semconv
from otel_kernel.inputs import InputError, Problem, content, open_input
from otel_kernel.inputs.content import read_content
from otel_kernel.mapping import NotATrip
from otel_kernel.records import Trip

ALWAYS = {semconv.PROCESS_PID: 4711, semconv.THREAD_ID: 4712, semconv.DEVICE_LOADED: True}
SENT = [with_ids(replace(a_record(seq, attributes=ALWAYS), kernel=f"k{seq}")) for seq in range(5)]


def requests(sent: Iterable[Trip]) -> list[bytes]:
    """Return one request in protobuf for each trip."""
    return [encode_spans([span_of(trip)]).SerializeToString() for trip in sent]


def json_lines(sent: Iterable[Trip]) -> list[bytes]:
    return [json.dumps(trip.to_json()).encode() for trip in sent]


def framed(messages: Iterable[bytes]) -> bytes:
    return b"".join(len(message).to_bytes(4, "big") + message for message in messages)


PACKED: dict[str, bytes] = {
    "lines": b"\n".join(json_lines(SENT)),
    "lines, gzip": gzip.compress(b"\n".join(json_lines(SENT))),
    "lines, gzip in several members": b"".join(gzip.compress(line + b"\n") for line in json_lines(SENT)),
    "lines, zstd": zstd.compress(b"\n".join(json_lines(SENT))),
    "lines, zstd in several frames": b"".join(zstd.compress(line + b"\n") for line in json_lines(SENT)),
    "messages of JSON": framed(json_lines(SENT)),
    "messages of protobuf": framed(requests(SENT)),
    "messages of JSON, each zstd": framed(map(zstd.compress, json_lines(SENT))),
    "messages of protobuf, each zstd": framed(map(zstd.compress, requests(SENT))),
    "messages of protobuf, all zstd": zstd.compress(framed(requests(SENT))),
    "one message of protobuf": b"".join(requests(SENT)),
    "one message of protobuf, gzip": gzip.compress(b"".join(requests(SENT))),
}


@pytest.mark.parametrize("packed", PACKED.values(), ids=PACKED)
def test_trips_come_out_however_a_file_is_packed(tmp_path: Path, packed: bytes) -> None:
    (tmp_path / "trips").write_bytes(packed)

    assert SENT == list(open_input(tmp_path / "trips"))


@pytest.mark.parametrize("packed", PACKED.values(), ids=PACKED)
def test_the_same_through_a_pipe_that_gives_a_byte_first(packed: bytes) -> None:
    reader, writer = os.pipe()

    def write() -> None:
        with open(writer, "wb", buffering=0) as pipe:  # noqa: PTH123 - a descriptor has no path
            pipe.write(packed[:1])
            pipe.write(packed[1:])

    thread = threading.Thread(target=write)
    thread.start()
    with open(reader, "rb") as pipe:  # noqa: PTH123 - the same
        found = list(read_content(pipe, "pipe"))
    thread.join()

    assert SENT == found


@settings(deadline=None, max_examples=60)
@given(st.lists(trips(("record", "failed", "abandoned")), min_size=1, max_size=3))
def test_any_trip_comes_back_from_protobuf(drawn: list[Trip]) -> None:
    sent = [with_ids(trip) for trip in drawn]

    assert sent == list(read_content(io.BytesIO(framed(requests(sent))), "spans"))


def problems(packed: bytes) -> list[str]:
    found = list(read_content(io.BytesIO(packed), "spans"))

    assert all(isinstance(each, (Trip, Problem)) for each in found)
    return [f"{each}" for each in found if isinstance(each, Problem)]


@pytest.mark.parametrize(
    ("packed", "said"),
    [
        (framed(requests(SENT))[:-3], "spans, message 5: it ends in the middle of the message"),
        (framed(requests(SENT)) + b"\0\0", "spans, message 6: it ends in the middle of the message"),
        (framed([*requests(SENT[:1]), b"\x0a\xff"]), "spans, message 2: malformed protobuf: "),
        (framed([*requests(SENT[:1]), b"{"]), "spans, message 2: malformed JSON: "),
        (framed([*requests(SENT[:1]), zstd.compress(b"{}")[:-4]]), "spans, message 2: damaged zstd: "),
        (framed([*requests(SENT[:1]), b"\x28\xb5\x2f\xfd??"]), "spans, message 2: damaged zstd: "),
        (zstd.compress(PACKED["lines"])[:-9], "spans: damaged compression, and what follows is lost: "),
        (gzip.compress(PACKED["lines"])[:-9], "spans: damaged compression, and what follows is lost: "),
        (
            gzip.compress(PACKED["lines"])[:12] + b"?" * 99,
            "spans: damaged compression, and what follows is lost: ",
        ),
    ],
)
def test_what_is_damaged_is_one_problem(packed: bytes, said: str) -> None:
    (found,) = problems(packed)

    assert found.startswith(said)


def test_after_a_damaged_message_the_others_still_count() -> None:
    messages = requests(SENT)
    found = list(read_content(io.BytesIO(framed([messages[0], b"\x0a\xff", *messages[1:]])), "spans"))

    assert SENT == [each for each in found if isinstance(each, Trip)]
    assert 1 == len([each for each in found if isinstance(each, Problem)])


def as_it_is(message: bytes) -> bytes:
    return message


def framed_zstd(message: bytes) -> bytes:
    return framed([zstd.compress(message)])


def framed_alone(message: bytes) -> bytes:
    return framed([message])


@pytest.mark.parametrize("pack", [as_it_is, gzip.compress, zstd.compress, framed_zstd, framed_alone])
def test_what_is_too_long_is_a_problem_and_never_in_memory(
    monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    limit = 100_000
    monkeypatch.setattr(content, "MAX_MESSAGE", limit)
    packed = pack(b"{" + b" " * 300 * limit)
    tracemalloc.start()
    found = problems(packed)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert 1 == len(found)
    assert "not read" in found[0]
    assert 40 * limit > peak


def test_after_a_line_that_is_too_long_the_others_still_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MAX_MESSAGE", 10_000)
    lines = json_lines(SENT)
    found = list(read_content(io.BytesIO(b"\n".join([lines[0], b"{" + b" " * 10_001, *lines[1:]])), "spans"))

    assert SENT == [each for each in found if isinstance(each, Trip)]
    assert ["spans:2: a line of more than 10000 bytes is not read"] == [
        str(each) for each in found if isinstance(each, Problem)
    ]


def test_spans_of_others_are_counted(tmp_path: Path) -> None:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

    span = TracerProvider(shutdown_on_exit=False).get_tracer("shop").start_span("GET /")
    span.set_attribute("parts", ["a", "b"])
    assert isinstance(span, ReadableSpan)
    found = list(read_content(io.BytesIO(framed([encode_spans([span]).SerializeToString()])), "spans"))

    assert [NotATrip] == list(map(type, found))


@pytest.mark.parametrize(
    ("module", "packed", "extra"),
    [
        ("backports", PACKED["lines, zstd"], "otel-kernel[zstd]"),
        ("opentelemetry.proto.trace.v1.trace_pb2", PACKED["messages of protobuf"], "otel-kernel[otlp]"),
    ],
)
def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, packed: bytes, extra: str
) -> None:
    (tmp_path / "trips").write_bytes(packed)
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(InputError, match=extra.replace("[", r"\[")):
        list(open_input(tmp_path / "trips"))
