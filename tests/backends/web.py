"""A web server of the tests that stands for a backend which cannot be installed, or answers what none should."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Question:
    """What was asked."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What to say."""

    body: bytes
    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    promised: int | None = None
    """Length to announce, if it is not that of the body."""


Answers: TypeAlias = Callable[[Question], Answer]


def as_json(value: Any) -> Answer:
    """Return an answer in JSON."""
    return Answer(json.dumps(value).encode(), headers={"Content-Type": "application/json"})


@dataclass
class Web:
    """A server at work."""

    port: int
    questions: list[Question] = field(default_factory=list[Question])


@contextmanager
def web(answers: Answers) -> Generator[Web]:
    """Start a server on loopback that says what `answers` returns, and end it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._do(b"")

        def do_POST(self) -> None:
            self._do(self.rfile.read(int(self.headers["Content-Length"])))

        def _do(self, body: bytes) -> None:
            parts = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            question = Question(
                parts.path, query, {name.lower(): value for name, value in self.headers.items()}, body
            )
            started.questions.append(question)
            answer = answers(question)
            self.send_response(answer.code)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            length = len(answer.body) if answer.promised is None else answer.promised
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base names it so
            """Say nothing: what went wrong is for the tests to see."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    started = Web(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield started
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
