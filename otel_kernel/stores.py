"""Where the persistent store of a runtime is, as its settings say."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """Where a process that starts now keeps its artifacts, unless its code says otherwise."""

    folder: Path | None
    """None where there is no one folder, or the store is off."""
    setting: str
    """The variable that decides, and what it means where there is no folder."""
    is_off: bool = False


def named_by(variable: str) -> StoreLocation | None:
    """Return the folder that a variable of the environment names, or None if it is not set."""
    folder = os.environ.get(variable)
    return StoreLocation(Path(folder), variable) if folder else None
