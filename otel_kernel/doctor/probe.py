"""Runs in a process of its own: imports one runtime with its instrumentor at work and tells what became of it."""

from __future__ import annotations

import importlib
import json
import logging
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from otel_kernel.boot import RUNTIMES

MARK: Final = "otel-kernel doctor: "
"""How the line starts that holds the answer."""


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def main(name: str) -> None:
    """Print what `told` returns as JSON, behind the mark: a runtime may print something too.

    Args:
        name: top module of the runtime.
    """
    print(f"\n{MARK}{json.dumps(told(name))}", flush=True)


def told(name: str) -> dict[str, Any]:
    """Return what became of a runtime.

    Returns:
        `version` (None if no distribution tells), `requires`, `patched` (number of points), `missing` (names of
        points), `said` (what our log said), `store` (folder, setting, is_off; or None).

    Raises:
        ImportError: the runtime or its instrumentor cannot be imported.
    """
    from packaging.requirements import Requirement

    kept = _Kept()
    logging.getLogger("otel_kernel").addHandler(kept)
    module, _, attribute = RUNTIMES[name].partition(":")
    instrumentor: Any = getattr(importlib.import_module(module), attribute)()
    location = instrumentor.store_location()  # now: a runtime that is imported may change its own settings
    instrumentor.instrument()
    importlib.import_module(name)
    states = instrumentor.state_of_points()
    if "refused" not in states:
        _import_points(instrumentor)
        states = instrumentor.state_of_points()
    try:
        found = version(Requirement(instrumentor.requires).name)
    except PackageNotFoundError:
        found = None
    return {
        "version": found,
        "requires": instrumentor.requires,
        "patched": states.get("patched", 0),
        "missing": instrumentor.missing_points(),
        "said": kept.messages,
        "store": None
        if location is None
        else {
            "folder": None if location.folder is None else str(location.folder),
            "setting": location.setting,
            "is_off": location.is_off,
        },
    }


def _import_points(instrumentor: Any) -> None:
    """Import what a program imports later, so that all points are looked at."""
    for module in dict.fromkeys(point.module for point in instrumentor.points()):
        try:
            importlib.import_module(module)
        except Exception as error:
            print(f"{module}: {error}", file=sys.stderr)  # its points stay unseen


if __name__ == "__main__":
    main(sys.argv[1])
