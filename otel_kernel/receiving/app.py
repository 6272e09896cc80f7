"""The ASGI application that takes OTLP over HTTP: bounded, and it says taken only of what is committed."""

from __future__ import annotations

import asyncio
import hmac
import threading
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final, TypeAlias

from otel_kernel.inputs import InputError, Problem, otlp_protobuf
from otel_kernel.inputs.json_lines import read_line
from otel_kernel.kinds import Stamped
from otel_kernel.mapping import NotATrip
from otel_kernel.receiving import bodies
from otel_kernel.receiving.messages import JSON, PROTOBUF, Answer, refused, taken
from otel_kernel.recording.errors import RecordingError, RefusedTripError
from otel_kernel.recording.writer import RecordingSink
from otel_kernel.records import Trip

PATH: Final = "/v1/traces"
_AT_ONCE: Final = 4
"""Requests whose bodies are in memory at once; the others wait."""
_PATIENCE: Final = 30.0
"""Seconds for which a sender may be silent in the middle of a body."""
_RETRY_SECONDS: Final = 5
_SAID: Final = 5
"""Reasons in the answer to a request of which spans are rejected."""

_Message: TypeAlias = "MutableMapping[str, Any]"


class ReceiverApp:
    """Takes export requests, and writes the trips in them to a recording.

    Args:
        sink: where the trips go.
        token: what senders must show, or None for all that reach it.
        on_problem: told of each span that is not taken, on any thread.
        on_failure: told that nothing can be written any more.
        max_body: bytes of a body, packed and unpacked.
    """

    def __init__(
        self,
        sink: RecordingSink,
        *,
        token: str | None = None,
        on_problem: Callable[[Problem], None],
        on_failure: Callable[[RecordingError], None],
        max_body: int = bodies.MAX_BODY,
    ) -> None:
        self._sink = sink
        self._token = None if token is None else token.encode()
        self._on_problem = on_problem
        self._on_failure = on_failure
        self._max_body = max_body
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._lock = threading.Lock()
        self.trips = 0
        """Trips written so far."""
        self.other_spans = 0
        """Spans so far that are no trips."""

    async def __call__(
        self,
        scope: _Message,
        receive: Callable[[], Awaitable[_Message]],
        send: Callable[[_Message], Awaitable[None]],
    ) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise RuntimeError(f"HTTP is spoken here, not {scope['type']}")
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        answer = self._refused_unread(scope, headers, content_type)
        if answer is None:
            async with self._places:
                answer = await self._answer(receive, headers, content_type)
        if answer is not None:
            await _send(send, answer, content_type)

    def _refused_unread(self, scope: _Message, headers: dict[str, str], content_type: str) -> Answer | None:
        """Return what is to be said before any of the body is read, or None if it is to be read."""
        if scope["path"] != PATH:
            return refused(content_type, 404, f"only {PATH} is taken here")
        if scope["method"] != "POST":
            return refused(content_type, 405, "only POST is taken here", ("Allow", "POST"))
        given = headers.get("authorization", "").encode()
        if self._token is not None and not hmac.compare_digest(given, b"Bearer " + self._token):
            return refused(content_type, 401, "the token is missing or wrong", ("WWW-Authenticate", "Bearer"))
        if content_type not in (PROTOBUF, JSON):
            return refused(content_type, 415, f"only {PROTOBUF} and {JSON} are taken")
        if _encoding(headers) not in bodies.ENCODINGS:
            known = ", ".join(filter(None, bodies.ENCODINGS))
            return refused(content_type, 415, f"only {known} are taken", ("Accept-Encoding", known))
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._max_body:
            return self._too_large(content_type)
        return None

    def _too_large(self, content_type: str) -> Answer:
        return refused(content_type, 413, f"a body of more than {self._max_body} bytes is not taken")

    async def _answer(
        self, receive: Callable[[], Awaitable[_Message]], headers: dict[str, str], content_type: str
    ) -> Answer | None:
        body = bytearray()
        while True:
            try:
                message = await asyncio.wait_for(receive(), _PATIENCE)
            except asyncio.TimeoutError:
                return refused(
                    content_type, 408, f"nothing came for {_PATIENCE:g} s", ("Connection", "close")
                )
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > self._max_body:
                return self._too_large(content_type)
            if not message.get("more_body", False):
                break
        return await asyncio.to_thread(self._take, bytes(body), _encoding(headers), content_type)

    def _take(self, body: bytes, encoding: str, content_type: str) -> Answer:
        try:
            message = bodies.unpack(body, encoding, self._max_body)
            found = list(_read(message, content_type))
        except bodies.TooLargeError:
            return self._too_large(content_type)
        except ValueError as error:
            return refused(content_type, 400, str(error))
        except InputError as error:
            return refused(content_type, 415, str(error))
        problems = [each for each in found if isinstance(each, Problem)]
        whole = [problem for problem in problems if problem.is_whole]
        if whole:
            return refused(content_type, 400, whole[0].reason)
        with self._lock:  # one writer is fastest, and the senders' order is kept
            try:
                trips = self._write((each for each in found if isinstance(each, Trip)), problems)
            except RecordingError as error:
                if error.lasting:
                    self._on_failure(error)
                return refused(content_type, 503, str(error), ("Retry-After", str(_RETRY_SECONDS)))
            self.trips += trips
            self.other_spans += len(found) - trips - len(problems)
        for problem in problems:
            self._on_problem(problem)
        return taken(content_type, len(problems), "; ".join(each.reason for each in problems[:_SAID]))

    def _write(self, trips: Iterable[Trip], problems: list[Problem]) -> int:
        written = 0
        for trip in trips:
            try:
                self._sink.finished(trip)
                written += 1
            except RefusedTripError as error:
                problems.append(Problem("request", str(error)))
        return written


def _read(message: bytes, content_type: str) -> Iterable[Trip | Stamped | NotATrip | Problem]:
    read = read_line if content_type == JSON else otlp_protobuf.read_request
    return read(message, "request")


def _encoding(headers: dict[str, str]) -> str:
    return headers.get("content-encoding", "").strip().lower()


async def _send(send: Callable[[_Message], Awaitable[None]], answer: Answer, content_type: str) -> None:
    headers = [
        (b"content-type", (PROTOBUF if content_type == PROTOBUF else JSON).encode()),
        (b"content-length", str(len(answer.body)).encode()),
        *((name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers),
    ]
    await send({"type": "http.response.start", "status": answer.code, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
