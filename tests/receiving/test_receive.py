"""`otel-kernel receive`: what it takes, what it refuses, and when it says that it has taken something."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from backports import zstd
from cli.command import refusal
from example_trips import SESSION, a_record, other_session
from google.protobuf.json_format import MessageToDict
from mapping.carriers import full_trip, span_of, with_ids
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider

from otel_kernel import semconv
from otel_kernel.receiving import bodies
from otel_kernel.receiving.messages import refused
from otel_kernel.recording.reader import read_trips
from otel_kernel.records import Session, Trip
from receiving.command import Receiving, receiving

ALWAYS = {semconv.PROCESS_PID: 4711, semconv.THREAD_ID: 4712, semconv.DEVICE_LOADED: True}
PROTOBUF = "application/x-protobuf"
JSON = "application/json"
SENT = [with_ids(a_record(seq, ir="label 0:\n" * 100, attributes=ALWAYS)) for seq in range(3)] + [
    with_ids(replace(full_trip(), seq=20))
]


def protobuf(sent: Iterable[Trip]) -> bytes:
    return encode_spans([span_of(trip) for trip in sent]).SerializeToString()


def otlp_json(sent: Iterable[Trip]) -> bytes:
    return json.dumps(MessageToDict(encode_spans([span_of(trip) for trip in sent]))).encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiving]:
    """The command, with a recording of its own."""
    with receiving(tmp_path_factory.mktemp("receiving") / "r.db") as started:
        yield started


def post(
    server: Receiving, body: bytes, content_type: str = PROTOBUF, encoding: str = "", **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    """Send a request and return the answer's code, body and headers."""
    given = {"Content-Type": content_type, **({"Content-Encoding": encoding} if encoding else {}), **headers}
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request("POST", "/v1/traces", body, given)
        answer = connection.getresponse()
        return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}


def recorded(server: Receiving, session: Session = SESSION) -> list[Trip]:
    """Return the trips of a session in the recording, in the middle of receiving."""
    return [trip for trip in read_trips(server.recording) if trip.session == session]


@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "deflate", "zstd"])
@pytest.mark.parametrize(("encode", "content_type"), [(protobuf, PROTOBUF), (otlp_json, JSON)])
def test_trips_are_in_the_recording_when_the_request_is_answered(
    server: Receiving, encode: Callable[[Iterable[Trip]], bytes], content_type: str, encoding: str
) -> None:
    session = other_session(hash((content_type, encoding)) % 2**64, 1)
    sent = [replace(trip, session=session) for trip in SENT]
    pack: dict[str, Callable[[bytes], bytes]] = {
        "gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd.compress
    }  # fmt: skip
    body = encode(sent)
    code, answer, headers = post(
        server, pack.get(encoding, bytes)(body), f"{content_type}; charset=utf-8", encoding
    )

    assert sent == recorded(server, session)
    assert (200, content_type) == (code, headers["content-type"])
    assert (b"" if content_type == PROTOBUF else b"{}") == answer


def test_a_request_that_comes_twice_counts_once(server: Receiving) -> None:
    sent = [replace(trip, session=other_session(77)) for trip in SENT]
    codes = [post(server, protobuf(sent))[0] for _ in range(2)]

    assert [200, 200] == codes
    assert sent == recorded(server, other_session(77))


def test_spans_that_cannot_be_trips_any_more_are_rejected_and_the_others_taken(server: Receiving) -> None:
    trip = replace(with_ids(full_trip()), session=other_session(78))
    cut = span_of(trip, limits=SpanLimits(max_attribute_length=20))
    good = span_of(replace(trip, seq=13))
    other = TracerProvider(shutdown_on_exit=False).get_tracer("shop").start_span("GET /")
    assert isinstance(other, ReadableSpan)
    body = encode_spans([cut, good, other])
    code, answer, _ = post(server, body.SerializeToString())
    partial = ExportTraceServiceResponse.FromString(answer).partial_success
    json_code, json_answer, _ = post(server, json.dumps(MessageToDict(body)).encode(), JSON)
    json_partial = json.loads(json_answer)["partialSuccess"]

    assert (200, 200) == (code, json_code)
    assert 1 == partial.rejected_spans == int(json_partial["rejectedSpans"])
    assert partial.error_message.startswith("cut: ")
    assert partial.error_message == json_partial["errorMessage"]
    assert [13] == [trip.seq for trip in recorded(server, other_session(78))]


def test_a_trip_that_contradicts_the_recording_is_rejected(server: Receiving) -> None:
    first = with_ids(a_record(session=other_session(79, 1), attributes=ALWAYS))
    second = replace(first, seq=1, session=other_session(79, 2))
    post(server, protobuf([first]))
    code, answer, _ = post(server, protobuf([second, replace(first, seq=2)]))
    partial = ExportTraceServiceResponse.FromString(answer).partial_success

    assert (200, 1) == (code, partial.rejected_spans)
    assert "a session has one run" in partial.error_message
    assert [0, 2] == [trip.seq for trip in recorded(server, other_session(79, 1))]


def deep_json(_: Iterable[Trip]) -> bytes:
    return b'{"resourceSpans":' + b"[" * 1_000_000


def many_attributes(_: Iterable[Trip]) -> bytes:
    request = TracesData()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    for _number in range(1_000_000):
        span.attributes.add(key="a")
    return request.SerializeToString()


@pytest.mark.parametrize(
    ("body", "content_type", "encoding", "code", "reason"),
    [
        (b"\x0a\xff", PROTOBUF, "", 400, "malformed protobuf"),
        (b"{", JSON, "", 400, "malformed JSON"),
        (b"[]", JSON, "", 400, "not OTLP"),
        (b'{"resourceSpans": 7}', JSON, "", 400, "not OTLP"),
        (b"hello", PROTOBUF, "gzip", 400, "damaged compression"),
        (gzip.compress(b"hello")[:-5], PROTOBUF, "gzip", 400, "damaged compression"),
        (b"hello", PROTOBUF, "zstd", 400, "damaged zstd"),
        (b"hello", PROTOBUF, "br", 415, "only identity, gzip, deflate, zstd are taken"),
        (b"hello", "text/plain", "", 415, "only application/x-protobuf and application/json are taken"),
        (
            gzip.compress(b"{" + b" " * bodies.MAX_BODY),
            JSON,
            "gzip",
            413,
            "a body of more than 67108864 bytes",
        ),
        (
            zstd.compress(b"{" + b" " * bodies.MAX_BODY),
            JSON,
            "zstd",
            413,
            "a body of more than 67108864 bytes",
        ),
        (deep_json(()), JSON, "", 400, "malformed JSON"),
    ],
    ids=range(12),
)
def test_what_is_no_request_is_refused_for_good(
    server: Receiving, body: bytes, content_type: str, encoding: str, code: int, reason: str
) -> None:
    answered, answer, headers = post(server, body, content_type, encoding)

    assert code == answered
    assert reason.encode() in answer
    assert content_type == headers["content-type"] or content_type == "text/plain"


def test_a_million_attributes_are_a_span_of_somebody_else(server: Receiving) -> None:
    code, answer, _ = post(server, many_attributes(()))

    assert (200, b"") == (code, answer)


def test_a_body_that_announces_too_much_is_refused_unread(server: Receiving) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        head = f"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: {PROTOBUF}\r\nContent-Length: {2**40}\r\n\r\n"
        connection.sendall(head.encode())

        assert connection.recv(1000).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("method", "path", "code"), [("GET", "/v1/traces", 405), ("POST", "/v1/metrics", 404), ("POST", "/", 404)]
)
def test_only_traces_are_taken(server: Receiving, method: str, path: str, code: int) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request(method, path, b"", {"Content-Type": JSON})

        assert code == connection.getresponse().status


@pytest.mark.parametrize("reason", ["a", "é" * 100, "x" * 20_000])
def test_the_status_of_a_refusal_is_a_message_of_protobuf(reason: str) -> None:
    body = refused(PROTOBUF, 400, reason).body
    # Of the messages at hand, one whose field 2 is a string too.
    partial = ExportTracePartialSuccess.FromString(body)

    assert (0, reason) == (partial.rejected_spans, partial.error_message)


@pytest.mark.parametrize("by_file", [True, False])
def test_with_a_token_nothing_else_is_taken(tmp_path: Path, by_file: bool) -> None:
    (tmp_path / "token").write_text("secret\n")
    options = ("--token-file", tmp_path / "token") if by_file else ()
    variables = {} if by_file else {"OTEL_KERNEL_RECEIVE_TOKEN": "secret"}
    with receiving(tmp_path / "r.db", *options, variables=variables) as server:
        without, wrong, right = (
            post(server, protobuf(SENT), **({"Authorization": given} if given else {}))
            for given in ("", "Bearer wrong", "Bearer secret")
        )

        assert (401, 401, 200) == (without[0], wrong[0], right[0])
        assert "Bearer" == without[2]["www-authenticate"]
        assert SENT == recorded(server)


def test_what_cannot_be_written_is_not_acknowledged_and_is_taken_later(tmp_path: Path) -> None:
    with receiving(tmp_path / "r.db") as server:
        post(server, protobuf(SENT[:1]))
        with closing(sqlite3.connect(tmp_path / "r.db", isolation_level=None)) as locking:
            locking.execute("BEGIN IMMEDIATE")
            code, answer, headers = post(server, protobuf(SENT))
            locking.execute("ROLLBACK")
        later, _, _ = post(server, protobuf(SENT))

        assert (503, "5") == (code, headers["retry-after"])
        assert b"is locked by another process" in answer
        assert 200 == later
        assert SENT == recorded(server)


def test_a_recording_that_is_replaced_ends_it_and_nothing_is_acknowledged(tmp_path: Path) -> None:
    with receiving(tmp_path / "r.db") as server:
        post(server, protobuf(SENT[:1]))
        (tmp_path / "r.db").rename(tmp_path / "moved.db")
        code, _, _ = post(server, protobuf(SENT[1:]))

        assert 503 == code
        assert 2 == server.wait()
    assert f"otel-kernel: the recording {tmp_path}/r.db was removed or replaced" in server.said[-1]


def test_it_says_where_it_listens_and_in_the_end_what_it_took(tmp_path: Path) -> None:
    with receiving(tmp_path / "r.db") as server:
        post(server, protobuf(SENT))

        assert 0 == server.end()
    assert [
        f"otel-kernel: listening on {server.url}/v1/traces, recording to {tmp_path}/r.db",
        "otel-kernel: 4 trips written, 0 spans of others passed over",
    ] == server.said


def test_the_host_and_program_of_the_receiver_are_not_those_of_the_trips(tmp_path: Path) -> None:
    with receiving(tmp_path / "r.db") as server:
        own_pid = replace(SENT[0], attributes={**SENT[0].attributes, semconv.PROCESS_PID: server.process.pid})
        post(server, protobuf([own_pid]))
        with closing(sqlite3.connect(tmp_path / "r.db")) as connection:
            (row,) = connection.execute("SELECT host, pid, program FROM sessions")

    assert (None, None, None) == row


def test_it_refuses_what_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("a text\n" * 200)
    (tmp_path / "empty").write_text("\n")
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]

        assert f"cannot listen on 127.0.0.1:{port}: " in refusal(
            "receive", "--listen", f"127.0.0.1:{port}", "--recording", tmp_path / "r.db"
        )
    assert "--listen must be like 127.0.0.1:4318, got '4318'" == refusal(
        "receive", "--listen", "4318", "--recording", tmp_path / "r.db"
    )
    assert f"{tmp_path}/text.db is not a recording" in refusal("receive", "--recording", tmp_path / "text.db")
    assert "the token is empty" in refusal("receive", "--token-file", tmp_path / "empty")
