"""Call something when a module has been imported, without importing it ourselves.

This module is in every process that otel-kernel is switched on for, so it imports next to nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any

Callback = Callable[[ModuleType], None]

_waiting: dict[str, list[Callback]] = {}


def when_imported(name: str, callback: Callback) -> None:
    """Call `callback` with the module `name`: now if it is imported, else right after it is.

    An exception in `callback` is logged and never breaks the import.
    """
    module = sys.modules.get(name)
    if module is not None:
        _call(callback, module)
        return
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    _waiting.setdefault(name, []).append(callback)


def cancel(callback: Callback) -> None:
    """Forget `callback` wherever it waits."""
    for name, callbacks in list(_waiting.items()):
        if callback in callbacks:
            callbacks.remove(callback)
            if not callbacks:
                del _waiting[name]


def _call(callback: Callback, module: ModuleType) -> None:
    try:
        callback(module)
    except Exception:
        from otel_kernel import faults

        faults.caught(f"instrumenting {module.__name__} at its import")


class _Finder:
    """Finds nothing by itself: lets the other finders find, and hooks the loader of an awaited module."""

    def __init__(self) -> None:
        self._finding: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        # Another tool's finder may ask all finders again, us included: the import lock of the module makes
        # sure that it is the same thread that asks.
        if name not in _waiting or name in self._finding:
            return None
        self._finding.add(name)
        try:
            for finder in sys.meta_path:
                find: Any = getattr(finder, "find_spec", None)
                spec: ModuleSpec | None = find(name, path, target) if find and finder is not self else None
                if spec is not None:
                    _hook(spec.loader, name)
                    return spec
        finally:
            self._finding.discard(name)
        return None


def _hook(loader: Any, name: str) -> None:
    """Shadow `exec_module` on this one loader object; the loader stays what it is for everybody else."""
    original = getattr(loader, "exec_module", None)
    if original is None or isinstance(loader, type):
        return  # a module without Python's own loading protocol, or built into the interpreter

    def exec_module(module: ModuleType) -> None:
        loader.__dict__.pop("exec_module", None)
        original(module)
        for callback in _waiting.pop(name, ()):
            _call(callback, module)

    try:
        loader.exec_module = exec_module
    except AttributeError:
        return  # a loader with slots: it cannot be told apart from others, so its module is left alone


_FINDER = _Finder()
