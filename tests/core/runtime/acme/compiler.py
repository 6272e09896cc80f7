"""Acme's compiler. A kernel's body is any callable, so that a test can do anything while it compiles."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from acme import store


class CompileError(Exception):
    """Acme cannot compile this."""


class Kernel:
    """What compiling gives."""

    def __init__(self, name: Any, value: Any) -> None:
        self.name = name
        self.value = value


class Compiler:
    """Compiles each name once."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.kernels: dict[Any, Kernel] = {}
        self.calls = 0
        self.extra: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.lock = threading.RLock()
        vars(self).update(state)

    def compile(self, name: Any, body: Callable[[], Any] | None = None, **extra: Any) -> Kernel:
        """Return the kernel, from memory if it is there."""
        self.calls += 1
        self.extra = extra
        if name not in self.kernels:
            found = store.find(name)
            self.kernels[name] = found if found is not None else Kernel(name, body() if body else None)
        return self.kernels[name]

    @staticmethod
    def link(name: str, *parts: str, flags: str = "none") -> tuple[str, ...]:
        """Return what was linked."""
        return (name, *parts, flags)

    @classmethod
    def load(cls, name: str) -> tuple[type, str]:
        """Return the class that loads, and the name."""
        return cls, name


class TunedCompiler(Compiler):
    """Inherits everything."""


class CheckedCompiler(Compiler):
    """Overrides a method and calls the one it overrides."""

    def compile(self, name: Any, body: Callable[[], Any] | None = None, **extra: Any) -> Kernel:
        """Check nothing, compile."""
        return super().compile(name, body, **extra)


def build(name: str, body: Callable[[], Any] | None = None) -> Kernel:
    """Compile by a new compiler."""
    return Compiler().compile(name, body)
