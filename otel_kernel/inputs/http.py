"""Questions to the HTTP API of a backend: with a time-out, a bound, and errors of one line."""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import Any, Final
from urllib.parse import unquote, urlencode

from otel_kernel.inputs.content import MAX_MESSAGE
from otel_kernel.inputs.problems import InputError
from otel_kernel.inputs.urls import BackendUrl

HEADERS_VARIABLE: Final = "OTEL_KERNEL_INPUT_HEADERS"
"""Headers for every question, `name=value,name=value`, percent-encoded as in OTEL_EXPORTER_OTLP_HEADERS."""

_PIECE: Final = 256 * 1024
_SHOWN: Final = 300
"""Bytes of an error's body that are shown."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows nowhere: what is told to one host in confidence would go to another."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        return None


_opener: Final = urllib.request.build_opener(_NoRedirects)


class HttpApi:
    """An API to ask.

    Args:
        url: where it is, and who asks.
    """

    def __init__(self, url: BackendUrl) -> None:
        self._url = url
        self._headers = _headers_of_environment()
        if url.user is not None:
            pair = f"{url.user}:{url.password or ''}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"

    def json(self, path: str, query: Sequence[tuple[str, str]] = ()) -> Any:
        """Return what the API answers, or None if there is nothing of that name (404).

        Raises:
            InputError: it does not answer, answers with an error, or with no JSON of a bearable size.
        """
        question = f"{path}?{urlencode(query)}" if query else path
        with self.opened(question) as answer:
            if answer is None:
                return None
            body = answer.read(MAX_MESSAGE + 1)
        if len(body) > MAX_MESSAGE:
            raise InputError(
                f"{self._url.name} answers with more than {MAX_MESSAGE} bytes: ask for less, by limit="
            )
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self._url.name} does not answer {path} with JSON: {error}") from None

    @contextmanager
    def opened(
        self, question: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Generator[HTTPResponse | None]:
        """Ask, and give the answer to read, or None if there is nothing of that name (404).

        Raises:
            InputError: it does not answer, or answers with an error; also while the answer is read.
        """
        request = urllib.request.Request(
            self._url.base + question,
            data,
            {"Accept": "application/json", **self._headers, **(headers or {})},
        )
        try:
            with _opener.open(request, timeout=self._url.timeout) as answer:
                yield answer
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404:
                    yield None
                    return
                said = " ".join(error.read(_SHOWN).decode(errors="replace").split())
            raise InputError(
                f"{self._url.name} answers {error.code} {error.reason}{_hint(error.code)}: {said}"
            ) from None
        except urllib.error.URLError as error:
            raise InputError(
                f"{self._url.name} does not answer: {error.reason}: is it there, and is the URL right?"
            ) from error
        except TimeoutError as error:
            raise InputError(
                f"{self._url.name} was silent for {self._url.timeout:g} s: set timeout= to wait longer"
            ) from error
        except (HTTPException, OSError) as error:
            raise InputError(f"{self._url.name} broke off: {error or type(error).__name__}") from error


def lines_of(answer: HTTPResponse) -> Iterator[bytes]:
    """Yield the lines of an answer, of which none is longer than a message may be.

    Its own `readline` takes an answer that breaks off for one that ends.

    Raises:
        HTTPException: the answer breaks off, or a line is too long.
    """
    rest = bytearray()
    while piece := answer.read1(_PIECE):
        *lines, end = piece.split(b"\n")
        if lines:
            yield bytes(rest) + lines[0]
            yield from lines[1:]
            rest.clear()
        rest += end
        if len(rest) > MAX_MESSAGE:
            raise HTTPException(f"a line of more than {MAX_MESSAGE} bytes is not read")
    if answer.length:
        raise IncompleteRead(b"", answer.length)
    if rest:
        yield bytes(rest)


def _hint(code: int) -> str:
    if code in (401, 403):
        return f" (name a user in the URL, or set {HEADERS_VARIABLE})"
    return " (name the place that it leads to)" if 300 <= code < 400 else ""


def _headers_of_environment() -> dict[str, str]:
    headers: dict[str, str] = {}
    for pair in filter(None, os.environ.get(HEADERS_VARIABLE, "").split(",")):
        name, equals, value = pair.partition("=")
        if not equals or not name.strip() or any(ord(sign) < 0x20 for sign in unquote(pair)):
            raise InputError(f"{HEADERS_VARIABLE} must be like name=value,name=value")  # the rest is secret
        headers[unquote(name).strip()] = unquote(value).strip()
    return headers
