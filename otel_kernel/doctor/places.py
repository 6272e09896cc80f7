"""Whether something can be written where it is to be, without writing it."""

from __future__ import annotations

import os
from pathlib import Path


def can_be_written(path: Path) -> bool:
    """Whether a folder or file can be written, or be made if it is not there."""
    present = next(each for each in (path, *path.parents) if each.exists())
    if present.is_dir():
        return os.access(present, os.W_OK | os.X_OK)
    return present == path and os.access(path, os.W_OK)
