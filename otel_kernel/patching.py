"""Put a wrapper where a runtime compiles, and take exactly that away again."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import wrapt

WrapperFunction: TypeAlias = "Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]"
"""What wrapt calls: (wrapped, instance, args, kwargs)."""

Shape: TypeAlias = "Callable[[str, Point, Mapping[str, int]], WrapperFunction]"
"""Makes the wrapper of a point from the runtime's name, the point and the positions of its parameters."""

_MARK = "_self_otel_kernel_patch"  # wrapt keeps names with this prefix on the proxy itself


class MissingPointError(Exception):
    """A point is not there, or does not look as its table says."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place to wrap: which function, what it must look like, what wrapping it means.

    Example:
        >>> Point("numba.core.dispatcher", "Dispatcher.compile", trip(_read_compile), ("sig",), copied=True)
    """

    module: str
    name: str
    """Name inside the module, dotted for a method."""
    shape: Shape
    """`shapes.trip(reader)` or `shapes.probe(reader)`."""
    parameters: tuple[str, ...] = ()
    """Parameters that the reader asks for: without one of them the point counts as missing."""
    copied: bool = False
    """Whether programs pickle or copy the function: a wrapt proxy cannot be, a plain function can."""
    optional: bool = False
    """Whether the runtime is instrumented without this point where it is missing."""

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Patch:
    """One wrapper in place. A disabled one lets every call pass."""

    __slots__ = ("attribute", "enabled", "holder", "installed", "original")

    def __init__(self, holder: Any, attribute: str, original: Any) -> None:
        self.holder = holder
        self.attribute = attribute
        self.original = original
        self.installed: Any = None
        self.enabled = True

    def restore(self) -> None:
        """Put the original back if our wrapper is on top; else another tool's stays and ours lets pass."""
        self.enabled = False
        if _present(self.holder, self.attribute) is self.installed:
            setattr(self.holder, self.attribute, self.original)
            _patches.pop((id(self.holder), self.attribute), None)


_patches: dict[tuple[int, str], Patch] = {}
"""Patches in place, also those that lie disabled under another tool's wrapper; each keeps its holder alive."""


def install(runtime: str, point: Point) -> Patch:
    """Wrap `point`, whose module is imported.

    Raises:
        MissingPointError: the point is not there or has another shape; the message says which.
    """
    holder, attribute = _find(point)
    present = _patches.get((id(holder), attribute))
    if present is not None:
        present.enabled = True
        return present
    original = _present(holder, attribute)
    marked = getattr(original, _MARK, None)
    if isinstance(marked, Patch) and marked.installed is original:
        raise MissingPointError(f"{point} is wrapped by otel-kernel under another name already")
    patch = Patch(holder, attribute, original)
    body = point.shape(runtime, point, _positions(point, original))

    def wrapper(
        wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return body(wrapped, instance, args, kwargs) if patch.enabled else wrapped(*args, **kwargs)

    patch.installed = _plain(original, wrapper) if point.copied else wrapt.FunctionWrapper(original, wrapper)
    setattr(patch.installed, _MARK, patch)
    setattr(holder, attribute, patch.installed)
    _patches[id(holder), attribute] = patch
    return patch


def _present(holder: Any, attribute: str) -> Any:
    """Return what stands in the holder itself, descriptors unbound."""
    namespace: dict[str, Any] = holder.__dict__
    return namespace.get(attribute)


def _plain(original: Callable[..., Any], wrapper: WrapperFunction) -> Callable[..., Any]:
    """Wrap a method by a function, which can be pickled by name as the original can."""

    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        return wrapper(original.__get__(args[0]), args[0], args[1:], kwargs)

    return method


def _find(point: Point) -> tuple[Any, str]:
    """Return (holder, attribute): the class that defines a method, not one that inherits it."""
    module = sys.modules.get(point.module)
    if module is None:
        raise MissingPointError(f"module {point.module} is not imported")
    *path, attribute = point.name.split(".")
    holder: Any = module
    for part in path:
        holder = getattr(holder, part, None)
        if holder is None:
            raise MissingPointError(f"{point} does not exist")
    if isinstance(holder, type):
        for base in holder.__mro__:
            if attribute in vars(base):
                return base, attribute
    elif isinstance(holder, ModuleType) and attribute in vars(holder):
        return holder, attribute
    raise MissingPointError(f"{point} does not exist")


def _positions(point: Point, original: Any) -> dict[str, int]:
    """Return where each parameter of a call stands, the instance not counted."""
    function: Any = getattr(original, "__func__", original)  # of a staticmethod or a classmethod
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        raise MissingPointError(f"{point} has no signature that can be read") from None
    missing = [name for name in point.parameters if name not in names]
    if missing:
        raise MissingPointError(
            f"{point} has no parameter {', '.join(missing)}; it takes ({', '.join(names)})"
        )
    bound = "." in point.name and not isinstance(original, staticmethod)
    return {name: index - bound for index, name in enumerate(names)}
