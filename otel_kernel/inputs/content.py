"""The content of a file or of a stream, whatever wrote it.

That is JSON lines, or messages that each follow their length, as the Collector's file exporter writes
everything but plain JSON, or one message of protobuf; all of it compressed, or each message by itself, or
nothing. What is none of the others is taken for JSON lines.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from otel_kernel.inputs import compression, otlp_protobuf
from otel_kernel.inputs.json_lines import read_line
from otel_kernel.inputs.problems import Problem
from otel_kernel.kinds import Stamped
from otel_kernel.mapping import NotATrip
from otel_kernel.records import Trip
from otel_kernel.texts import TextFiles

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_MESSAGE: Final = 256 * 1024 * 1024
"""Bytes of one line or message, also after decompression; a longer one is a problem, and memory is bounded."""

_LENGTH: Final = 4
"""Bytes of the length before a message."""
_ENOUGH: Final = 16
"""Bytes from which is seen what the content is, if they are not all of it."""
_REQUEST: Final = b"\x0a"
"""The tag of `resource_spans`, with which a request in protobuf starts; in JSON lines it ends an empty line."""
_TEXT: Final = frozenset(b"\t\n\r") | frozenset(range(0x20, 0x100))
_PIECE: Final = 1024 * 1024


def may_be_content(start: bytes) -> bool:
    """Whether bytes may be the first ones of what `read_content` reads."""
    if start.startswith((compression.GZIP, compression.ZSTD)) or _is_framed(start) or _is_request(start):
        return True
    return any(line.lstrip(b"\xef\xbb\xbf \t\r").startswith(b"{") for line in start.split(b"\n"))


def _is_framed(start: bytes) -> bool:
    length, message = start[:_LENGTH], start[_LENGTH:]
    is_length = bool(length.strip()) and int.from_bytes(length, "big") <= MAX_MESSAGE
    return is_length and message.startswith((b"{", _REQUEST, compression.ZSTD))


def _is_request(start: bytes) -> bool:
    return start.startswith(_REQUEST) and not _TEXT.issuperset(start)


def read_content(
    stream: BinaryIO, name: str, texts: TextFiles | None = None
) -> Iterator[Trip | Stamped | NotATrip | Problem]:
    """Yield what the content of a stream stands for, and a problem for each part of it that is lost.

    Args:
        stream: gives the bytes.
        name: names the stream in problems.
        texts: where to look for texts that are not carried whole.

    Raises:
        InputError: a package is needed that is not installed.
        OSError: the stream cannot be read.
    """
    try:
        content, start = _peeked(stream)
        plain = compression.unpacked(content, start, name)
        if plain is not None:
            content, start = _peeked(plain)
        if _is_framed(start):
            yield from _read_frames(content, name, texts)
        elif _is_request(start):
            yield from read_message(content.read(MAX_MESSAGE + 1), name, texts)
        else:
            yield from _read_lines(content, name, texts)
    except compression.errors() as error:
        yield Problem(name, f"damaged compression, and what follows is lost: {error}")


class _Pushed(io.RawIOBase):
    """A stream before which some of its bytes were put back."""

    def __init__(self, start: bytes, stream: BinaryIO) -> None:
        self._start = start
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer)
        piece = self._start[: len(view)] or self._stream.read(len(view))
        self._start = self._start[len(piece) :]
        view[: len(piece)] = piece
        return len(piece)


def _peeked(stream: BinaryIO) -> tuple[BinaryIO, bytes]:
    """Return the stream as it was, and what it begins with: as many bytes as it takes to see what it is."""
    peek = getattr(stream, "peek", None)
    start: bytes = peek(_ENOUGH) if peek is not None else b""
    if len(start) >= _ENOUGH or start.startswith(b"{"):  # JSON lines, and nobody knows when more will come
        return stream, start
    start = stream.read(_ENOUGH)  # a pipe has given less than it will
    return cast("BinaryIO", io.BufferedReader(_Pushed(start, stream))), start


def _read_lines(
    content: BinaryIO, name: str, texts: TextFiles | None
) -> Iterator[Trip | Stamped | NotATrip | Problem]:
    number = 0
    while line := content.readline(MAX_MESSAGE):  # in bytes, a line ends at "\n" and nowhere else
        number += 1
        where = f"{name}:{number}"
        if len(line) == MAX_MESSAGE and not line.endswith(b"\n"):
            while (piece := content.readline(_PIECE)) and not piece.endswith(b"\n"):
                pass
            yield Problem(where, f"a line of more than {MAX_MESSAGE} bytes is not read")
        else:
            yield from read_line(line, where, texts)


def _read_frames(
    content: BinaryIO, name: str, texts: TextFiles | None
) -> Iterator[Trip | Stamped | NotATrip | Problem]:
    number = 0
    while header := content.read(_LENGTH):
        number += 1
        where = f"{name}, message {number}"
        size = int.from_bytes(header, "big")
        if len(header) == _LENGTH and size > MAX_MESSAGE:
            yield Problem(
                where, f"a message of {size} bytes is not read, more than {MAX_MESSAGE} are too long"
            )
            _skip(content, size)
            continue
        message = content.read(size)
        if len(header) < _LENGTH or len(message) < size:
            yield Problem(where, "it ends in the middle of the message")
            return
        try:
            if message.startswith(compression.ZSTD):
                message = compression.unpack(message, MAX_MESSAGE, name)
        except compression.DamagedError as error:
            yield Problem(where, str(error))
            continue
        yield from read_message(message, where, texts)


def _skip(content: BinaryIO, size: int) -> None:
    while size > 0 and (piece := content.read(min(size, _PIECE))):
        size -= len(piece)


def read_message(
    message: bytes, where: str, texts: TextFiles | None = None
) -> Iterator[Trip | Stamped | NotATrip | Problem]:
    """Yield what one request stands for, in JSON or in protobuf, and a problem for each part that is lost.

    Args:
        message: the request.
        where: names it in problems.
        texts: where to look for texts that it does not carry whole.

    Raises:
        InputError: a package is needed that is not installed.
    """
    if len(message) > MAX_MESSAGE:
        yield Problem(where, f"a message of more than {MAX_MESSAGE} bytes is not read", is_whole=True)
    elif message.startswith(b"{"):
        yield from read_line(message, where, texts)
    else:
        yield from otlp_protobuf.read_request(message, where, texts)
