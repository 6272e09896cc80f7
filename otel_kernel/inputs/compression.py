"""Compressed content, unpacked in pieces, so that a small file cannot fill the memory."""

from __future__ import annotations

import gzip
import sys
import zlib
from typing import Any, BinaryIO, Final, cast

from otel_kernel.inputs.problems import InputError

GZIP: Final = b"\x1f\x8b"
"""How content that gzip packed starts."""
ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""The same for zstd."""


class DamagedError(ValueError):
    """Packed content is not as it was packed."""


class TooLongError(DamagedError):
    """Packed content is longer than it may be."""


def unpacked(stream: BinaryIO, start: bytes, name: str) -> BinaryIO | None:
    """Return what gives the content of a packed stream, or None if it is not packed.

    Args:
        stream: gives the packed bytes.
        start: the first of them, which are still to be read.
        name: names the stream in an error.

    Raises:
        InputError: the package that unpacks it is not installed.
    """
    if start.startswith(GZIP):
        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    if start.startswith(ZSTD):
        return cast("BinaryIO", _zstd(name).ZstdFile(stream))
    return None


def unpack(message: bytes, limit: int, name: str) -> bytes:
    """Return a message that zstd packed, by itself, of at most `limit` bytes.

    Raises:
        DamagedError: it is damaged or longer.
        InputError: the package that unpacks it is not installed.
    """
    zstd = _zstd(name)
    decompressor = zstd.ZstdDecompressor()
    try:
        content: bytes = decompressor.decompress(message, limit + 1)
    except zstd.ZstdError as error:
        raise DamagedError(f"damaged zstd: {error}") from None
    if len(content) > limit:
        raise TooLongError(f"a message of more than {limit} bytes is not read")
    if not decompressor.eof:
        raise DamagedError("damaged zstd: it ends too early")
    return content


def errors() -> tuple[type[Exception], ...]:
    """Return what is raised while damaged content is read."""
    damaged: tuple[type[Exception], ...] = (EOFError, zlib.error, gzip.BadGzipFile, DamagedError)
    for module in ("compression.zstd", "backports.zstd"):
        if module in sys.modules:
            damaged += (sys.modules[module].ZstdError,)
    return damaged


def _zstd(name: str) -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError as error:
        raise InputError(
            f"{name} is compressed with zstd, which needs a package: pip install 'otel-kernel[zstd]'"
        ) from error
    return zstd
