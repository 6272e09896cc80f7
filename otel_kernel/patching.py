"""Put a wrapper where a runtime compiles, and take exactly that away again."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import wrapt

WrapperFunction: TypeAlias = "Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]"
"""What wrapt calls: (wrapped, instance, args, kwargs)."""

Shape: TypeAlias = "Callable[[str, Point, Mapping[str, int]], WrapperFunction]"
"""Makes the wrapper of a point from the runtime's name, the point and the positions of its parameters."""

_MARK = "_self_otel_kernel_patch"  # wrapt keeps names with this prefix on the proxy itself

_DEEPEST = 100  # wrappers on one function; an object that makes up every attribute has no end


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
    """`shapes.trip(reader)`, `shapes.probe(reader)`, `shapes.parent(reader)` or `shapes.carry(parameter)`."""
    parameters: tuple[str, ...] = ()
    """Parameters that the reader asks for: without one of them the point counts as missing."""
    copied: bool = False
    """Whether programs pickle or copy the function: a wrapt proxy cannot be, a plain function can."""
    optional: bool = False
    """Whether the runtime is instrumented without this point where it is missing."""
    copies: Callable[[], Iterable[tuple[Any, str]]] | None = None
    """Finds the (object, attribute) pairs that may hold the function as well: other names of it, and
    references that were taken before. The wrapper takes the place of each, and leaves it again."""

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    def install(self, runtime: str) -> Patch:
        """Wrap the point; see `install`."""
        return install(runtime, self)


class Patch:
    """One wrapper in place. A disabled one lets every call pass."""

    __slots__ = ("attribute", "enabled", "holder", "pairs", "point", "wrap")

    def __init__(self, holder: Any, attribute: str, point: Point, body: WrapperFunction) -> None:
        self.holder = holder
        self.attribute = attribute
        self.point = point
        self.enabled = True
        self.pairs: list[tuple[Any, Any]] = []
        """Each original with its wrapper: first that of the point itself, then other ones of its copies."""

        def wrapper(
            wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> Any:
            return body(wrapped, instance, args, kwargs) if self.enabled else wrapped(*args, **kwargs)

        self.wrap = wrapper

    @property
    def original(self) -> Any:
        """What stood at the point."""
        return self.pairs[0][0]

    @property
    def installed(self) -> Any:
        """What stands there since."""
        return self.pairs[0][1]

    def wrapper_of(self, original: Any) -> Any:
        """Return the wrapper of `original`, always the same one."""
        for known, wrapper in self.pairs:
            if known is original:
                return wrapper
        if self.point.copied:
            plain = _plain_method if isinstance(self.holder, type) else _plain_function
            wrapper = plain(original, self.wrap)
        else:
            wrapper = wrapt.FunctionWrapper(original, self.wrap)
        setattr(wrapper, _MARK, self)
        self.pairs.append((original, wrapper))
        return wrapper

    def is_wrapper(self, function: Any) -> bool:
        """Whether `function` is one of this patch's own."""
        return any(wrapper is function for _, wrapper in self.pairs)

    def cover_copies(self) -> None:
        """Wrap what stands where else the function may be, unless ours is in it."""
        for holder, attribute in self._copies():
            present = _present(holder, attribute)
            if callable(present) and _ours_under(present) is None:
                setattr(holder, attribute, self.wrapper_of(present))

    def restore(self) -> None:
        """Put the original back if our wrapper is on top; else another tool's stays and ours lets pass."""
        self.enabled = False
        for holder, attribute in self._copies():
            present = _present(holder, attribute)
            for original, wrapper in self.pairs:
                if present is wrapper:
                    setattr(holder, attribute, original)
        if _present(self.holder, self.attribute) is self.installed:
            setattr(self.holder, self.attribute, self.original)
            _patches.pop((id(self.holder), self.attribute), None)

    def _copies(self) -> Iterable[tuple[Any, str]]:
        return self.point.copies() if self.point.copies is not None else ()


_patches: dict[tuple[int, str], Patch] = {}
"""Patches in place, also those that lie disabled under another tool's wrapper; each keeps its holder alive."""


def install(runtime: str, point: Point) -> Patch:
    """Wrap `point`, whose module is imported.

    Raises:
        MissingPointError: the point is not there or has another shape; the message says which.
    """
    holder, attribute = _find(point)
    original = _present(holder, attribute)
    ours = _ours_under(original)
    if ours is not None:
        if ours.holder is not holder or ours.attribute != attribute:
            raise MissingPointError(f"{point} is wrapped by otel-kernel under another name already")
        _patches[id(holder), attribute] = ours
        ours.enabled = True
        ours.cover_copies()
        return ours
    if point.copied and isinstance(original, (staticmethod, classmethod)):
        raise MissingPointError(f"{point} is no plain function or method")
    lost = _patches.get((id(holder), attribute))
    if lost is not None:
        lost.enabled = False  # reloaded, or hidden by another tool: a call must not pass two of ours
    patch = Patch(holder, attribute, point, point.shape(runtime, point, _positions(point, holder, original)))
    installed = patch.wrapper_of(original)
    try:
        setattr(holder, attribute, installed)
    except (AttributeError, TypeError) as error:
        raise MissingPointError(f"{point} cannot be replaced: {error}") from None
    _patches[id(holder), attribute] = patch
    patch.cover_copies()
    return patch


def _present(holder: Any, attribute: str) -> Any:
    """Return what stands in the holder itself, descriptors unbound."""
    namespace: dict[str, Any] = holder.__dict__
    return namespace.get(attribute)


def _ours_under(top: Any) -> Patch | None:
    """Return the patch whose wrapper is `top`, or lies under wrappers of other tools that tell what they wrap."""
    for _ in range(_DEEPEST):
        marked = getattr(top, _MARK, None)  # which wrappers on top show too, as if it were their own
        if isinstance(marked, Patch) and marked.is_wrapper(top):
            return marked
        top = getattr(top, "__wrapped__", None)
    return None


def _plain_function(original: Callable[..., Any], wrapper: WrapperFunction) -> Callable[..., Any]:
    """Wrap a function by a function, which can be pickled by name as the original can."""

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        return wrapper(original, None, args, kwargs)

    return function


def _plain_method(original: Callable[..., Any], wrapper: WrapperFunction) -> Callable[..., Any]:
    """Wrap a method by a function, which can be pickled by name as the original can."""

    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        if not args:
            return original(**kwargs)  # without an instance it raises, or knows better
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


def _positions(point: Point, holder: Any, original: Any) -> dict[str, int]:
    """Return where each parameter that has a place in a call stands, the instance not counted."""
    function: Any = getattr(original, "__func__", original)  # of a staticmethod or a classmethod
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise MissingPointError(f"{point} has no signature that can be read") from None
    missing = [name for name in point.parameters if name not in parameters]
    if missing:
        raise MissingPointError(
            f"{point} has no parameter {', '.join(missing)}; it takes ({', '.join(parameters)})"
        )
    placed = [
        name
        for name, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    bound = isinstance(holder, type) and not isinstance(original, staticmethod)
    return {name: index - bound for index, name in enumerate(placed)}
