"""Texts too big for a span: content-addressed gzip files beside the telemetry."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import tempfile
import zlib
from pathlib import Path

_PIECE = 1024 * 1024


class TextFiles:
    """A folder of texts, each named by the sha256 of its UTF-8 bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, sha256: str) -> Path:
        """Return where the text with this digest is or would be."""
        return self.folder / sha256[:2] / f"{sha256}.gz"

    def put(self, text: str, sha256: str) -> None:
        """Keep `text`; a text that is there already is left alone.

        Raises:
            OSError: the folder cannot be written.
        """
        path = self.path(sha256)
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(gzip.compress(text.encode(), compresslevel=6, mtime=0))
            Path(name).replace(path)  # atomic: a reader sees the whole text or none
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise

    def get(self, sha256: str, size: int) -> str | None:
        """Return the text with this digest and size in bytes, or None if it is not there or damaged."""
        data = bytearray()
        try:
            with gzip.open(self.path(sha256)) as file:
                # In pieces, and never more than one beyond what was announced: neither number can be trusted.
                while len(data) <= size and (piece := file.read(_PIECE)):
                    data += piece
            if len(data) != size or hashlib.sha256(data).hexdigest() != sha256:
                return None
            return data.decode()
        except (OSError, EOFError, zlib.error, UnicodeDecodeError):
            return None
