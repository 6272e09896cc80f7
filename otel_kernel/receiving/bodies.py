"""The body of a request, unpacked within a bound."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

from otel_kernel.inputs import compression

MAX_BODY: Final = 64 * 1024 * 1024
"""Bytes of a body, packed and unpacked; what the Collector's own receiver is told in our configurations."""


class TooLargeError(ValueError):
    """A body is longer than it may be."""


def unpack(body: bytes, encoding: str, limit: int = MAX_BODY) -> bytes:
    """Return what a body holds.

    Args:
        body: as it came.
        encoding: its `Content-Encoding`, a member of `ENCODINGS`.
        limit: bytes that it may hold.

    Raises:
        TooLargeError: it holds more.
        ValueError: it is damaged.
    """
    return ENCODINGS[encoding](body, limit)


def _plain(body: bytes, limit: int) -> bytes:
    if len(body) > limit:
        raise TooLargeError(f"a body of more than {limit} bytes is not taken")
    return body


def _zlib(wbits: int, body: bytes, limit: int) -> bytes:
    plain = bytearray()
    while body:
        decompressor = zlib.decompressobj(wbits=wbits)
        try:
            plain += decompressor.decompress(body, limit + 1 - len(plain))
        except zlib.error as error:
            raise ValueError(f"damaged compression: {error}") from None
        if len(plain) > limit:
            raise TooLargeError(f"a body of more than {limit} bytes is not taken")
        if not decompressor.eof:
            raise ValueError("damaged compression: it ends too early")
        body = decompressor.unused_data  # several members make one body
    return bytes(plain)


def _gzip(body: bytes, limit: int) -> bytes:
    return _zlib(31, body, limit)


def _deflate(body: bytes, limit: int) -> bytes:
    return _zlib(15, body, limit)


def _zstd(body: bytes, limit: int) -> bytes:
    try:
        return _plain(compression.unpack(body, limit, "the body"), limit)
    except compression.TooLongError as error:
        raise TooLargeError(str(error)) from None


ENCODINGS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "": _plain,
    "identity": _plain,
    "gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
}
"""What unpacks each `Content-Encoding`; zstd needs a package."""
