"""Call something when a module has been imported, without importing it ourselves.

This module is in every process that otel-kernel is switched on for, so it imports next to nothing.
"""

from __future__ import annotations

import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any

    Callback = Callable[[ModuleType], None]

_waiting: dict[str, list[Callback]] = {}

_unannounced: set[str] = set()
"""Awaited modules of which no loader will tell when they are ready: looked for at every other import."""


def when_imported(name: str, callback: Callback) -> None:
    """Call `callback` with the module `name`: now if it is imported, else right after it is.

    It is called once, also if the module is reloaded later. An exception in `callback` is logged and never
    breaks the import.
    """
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    # First wait, then look: another thread may import the module in between.
    _waiting.setdefault(name, []).append(callback)
    _unannounced.add(name)
    if name in _ready():
        _fire(name)


def cancel(callback: Callback) -> None:
    """Forget `callback` wherever it waits."""
    for callbacks in list(_waiting.values()):
        try:
            callbacks.remove(callback)
        except ValueError:
            continue


def _fire(name: str) -> None:
    """Call all that wait for `name`; one that is called may add others and cancel others."""
    _unannounced.discard(name)
    callbacks = _waiting.get(name, [])
    while callbacks:
        try:
            callback = callbacks.pop(0)
        except IndexError:
            return  # another thread was quicker
        try:
            callback(sys.modules[name])
        except Exception:
            from otel_kernel import faults

            faults.caught(f"instrumenting {name} at its import")


def _ready() -> list[str]:
    """Return which of the unannounced modules are imported by now."""
    ready: list[str] = []
    for name in tuple(_unannounced):
        module = sys.modules.get(name)
        if module is None:
            continue
        lazy = _lazy_loader(module)
        if lazy is not None:
            _hook(lazy, name)
        elif not getattr(getattr(module, "__spec__", None), "_initializing", False):
            ready.append(name)  # its body has been run, and is not being run by another thread just now
    return ready


def _lazy_loader(module: ModuleType) -> Any:
    """Return what will run the body of a module of `importlib.util.LazyLoader`, which any look at would run."""
    kind = type(module)
    if (kind.__module__, kind.__name__) != ("importlib.util", "_LazyModule"):
        return None
    return ModuleType.__getattribute__(module, "__dict__")["__spec__"].loader


class _Finder:
    """Finds nothing by itself: lets the other finders find, and hooks the loader of an awaited module."""

    def __init__(self) -> None:
        self._finding: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        # Another tool's finder may ask all finders again, us included. It is the same thread that asks:
        # the import system holds its lock while it finds, so nothing may be called and imported here either.
        if name in self._finding or not (_waiting.get(name) or _ready()):
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


class _Hook:
    """Stands in for `exec_module` on one loader object; the loader stays what it is for everybody else."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._exec_module: Callable[[ModuleType], None] = loader.exec_module

    def __call__(self, module: ModuleType) -> None:
        name = module.__name__
        # The loader of one module is left without a trace; that of many, as in a zip file, is needed again.
        if getattr(self._loader, "name", None) == name:
            self._loader.__dict__.pop("exec_module", None)
        self._exec_module(module)
        lazy = _lazy_loader(module)
        if lazy is not None and lazy is not self._loader:
            _hook(lazy, name)
            return
        for other in _ready():
            _fire(other)
        if name in sys.modules:
            _fire(name)


def _hook(loader: Any, name: str) -> None:
    while hasattr(loader, "__wrapped__"):
        loader = loader.__wrapped__  # another tool's proxy
    if isinstance(loader, type):
        return  # shared by all: the interpreter's own, for modules that are built in or frozen
    if not isinstance(getattr(loader, "exec_module", None), _Hook):
        try:
            loader.exec_module = _Hook(loader)
        except (AttributeError, TypeError):
            return  # a namespace package, or a loader without the protocol or with slots
    _unannounced.discard(name)


_FINDER = _Finder()
