"""Endpoints are found where exporters find them, and asked as exporters ask."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from otlp.receiver import Protocol, Receiver

from otel_kernel.doctor.endpoints import HTTP, USUAL, look, named
from otel_kernel.doctor.findings import Finding, State


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as started:
        yield started


def the_finding(otlp: str | None) -> Finding:
    (finding,) = look(otlp)
    return finding


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_an_endpoint_that_answers_is_well_and_gets_no_span(receiver: Receiver, protocol: Protocol) -> None:
    finding = the_finding(receiver.endpoint(protocol))

    assert (State.WELL, "takes exports") == (finding.state, finding.text)
    assert {"protocol": protocol, "told_by": "--otlp", "answers": True} == finding.facts
    assert 1 == len(receiver.requests)
    assert [] == receiver.spans


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_an_endpoint_that_refuses_is_said(receiver: Receiver, protocol: Protocol) -> None:
    receiver.refusals = 1

    finding = the_finding(receiver.endpoint(protocol))

    assert State.ATTENTION == finding.state
    assert {
        "grpc": "answers UNAVAILABLE: later, please",
        "http/protobuf": "answers 503 Service Unavailable",
    }[protocol] == finding.text
    assert finding.facts["answers"] is False


def test_a_path_that_takes_no_exports_is_said(receiver: Receiver) -> None:
    finding = the_finding(f"{receiver.endpoint('http/protobuf')}/spans")

    assert "answers 404 Not Found" == finding.text


def test_the_wrong_protocol_is_said(receiver: Receiver) -> None:
    by_http = the_finding(f"http://127.0.0.1:{receiver.grpc_port}")
    by_grpc = the_finding(f"grpc://127.0.0.1:{receiver.http_port}")

    assert by_http.text.startswith("does not answer over HTTP: ")
    assert by_grpc.text.startswith("answers UNAVAILABLE: ")


def test_where_nothing_listens_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    finding = the_finding(f"http://127.0.0.1:{port}")

    assert (State.ATTENTION, "cannot be reached: Connection refused") == (finding.state, finding.text)
    assert "start a Collector there, or correct --otlp" == finding.advice


def test_what_is_no_endpoint_is_said() -> None:
    finding = the_finding("collector:4317")

    assert State.ATTENTION == finding.state
    assert finding.text.startswith("OTLP endpoint 'collector:4317' must be like http://")


def test_without_an_endpoint_there_is_nothing_to_look_at() -> None:
    assert State.ABSENT == the_finding(None).state


def test_the_variables_of_both_exporters_are_looked_at(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_KERNEL_OTLP", receiver.endpoint("http/protobuf"))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{receiver.grpc_port}")

    assert [
        ("http/protobuf", "OTEL_KERNEL_OTLP", True),
        ("grpc", "OTEL_EXPORTER_OTLP_ENDPOINT", True),
    ] == [tuple(finding.facts[name] for name in ("protocol", "told_by", "answers")) for finding in look(None)]
    assert 2 == len(receiver.requests)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, []),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, [("grpc", "http://localhost:4317", "the default")]),
        (
            {"OTEL_TRACES_EXPORTER": "console,otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
            [("http/protobuf", "http://localhost:4318/v1/traces", "the default")],
        ),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "https://a:1/",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
            },
            [("http/protobuf", "https://a:1/v1/traces", "OTEL_EXPORTER_OTLP_ENDPOINT")],
        ),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1",
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b:2/in",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            },
            [("http/protobuf", "http://b:2/in", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")],
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "a:1"}, [("grpc", "a:1", "OTEL_EXPORTER_OTLP_ENDPOINT")]),
    ],
)
def test_variables_mean_what_they_mean_to_exporters(
    environ: Mapping[str, str], expected: list[tuple[str, str, str]]
) -> None:
    assert expected == [(each.protocol, each.url, each.told_by) for each in named(None, environ)]


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
            "OTEL_EXPORTER_OTLP_PROTOCOL must be grpc or http/protobuf, got 'http/json'",
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://"},
            "OTEL_EXPORTER_OTLP_ENDPOINT 'http://' has no host: it must be like http://localhost:4317",
        ),
    ],
)
def test_variables_that_no_exporter_can_use_are_said(
    variables: Mapping[str, str], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert (State.ATTENTION, text) == (the_finding(None).state, the_finding(None).text)


def test_a_port_that_usually_speaks_the_other_protocol_is_pointed_out(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(USUAL, receiver.http_port, HTTP)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{receiver.http_port}")

    assert (
        f"port {receiver.http_port} is usually http/protobuf: correct the protocol or OTEL_EXPORTER_OTLP_ENDPOINT"
        == the_finding(None).advice
    )


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_headers_travel_with_the_request_and_tls_is_trusted_by_its_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    made = ("-keyout", key, "-out", certificate)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *names, *made],
        check=True,
        capture_output=True,
    )
    seen: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.headers["x-token"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base names it so
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"https://localhost:{server.server_port}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-token=a%20b")
    try:
        untrusted = the_finding(url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(tmp_path / "no.pem"))
        unreadable = the_finding(url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(certificate))
        trusted = the_finding(url)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

    assert "does not answer over HTTP: " in untrusted.text
    assert f"{tmp_path}/no.pem cannot be read: No such file or directory" == unreadable.text
    assert (State.WELL, ["a b"]) == (trusted.state, seen)
