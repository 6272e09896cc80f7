"""Kernels of Numba's CPU compiler."""

# To mypy Numba is untyped.
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

from numba import njit, types
from numba.core.errors import TypingError
from numba.extending import overload
from numba.misc.special import literally

from conformance.adapter import Value

# A dispatcher with its private names.
Dispatcher = Any


@njit(cache=True)
def main_kernel(x: int) -> int:
    otk_secret_marker = x * 3
    return otk_secret_marker + 1


@njit(cache=True)
def second_kernel(x: float, y: float) -> float:
    return x - y


@njit
def unstored_kernel(x: float) -> float:
    return x / 2


@njit
def failing_kernel(x: int) -> int:
    return x + otk_secret_marker  # type: ignore[name-defined,no-any-return] # noqa: F821 # pyright: ignore[reportUndefinedVariable, reportUnknownVariableType] - that is what fails


@njit(cache=True)
def unloadable_kernel(x: int) -> int:
    return x


def _pick(x: Any) -> Any:
    """Stand for the overloads below."""
    raise NotImplementedError


@overload(_pick)
def _pick_never(x: Any) -> Any:
    raise TypingError("this candidate fits nothing")


@overload(_pick)
def _pick_body_fails(x: Any) -> Any:
    def body(x: Any) -> Any:
        return x.no_such_attribute

    return body


@overload(_pick)
def _pick_number(x: Any) -> Any:
    def body(x: Any) -> Any:
        return x + 40

    return body


@njit
def _repeat(x: int, times: int) -> int:
    return x * int(literally(times))


@njit
def controlled_kernel(x: int, times: int) -> int:
    return int(_pick(_repeat(x, times)))


def main() -> Value:
    return int(main_kernel(2))


def second() -> Value:
    return float(second_kernel(2.5, 1))


def unstored() -> Value:
    return float(unstored_kernel(3))


def failing() -> Value:
    return int(failing_kernel(1))


def unloadable() -> Value:
    """Put an entry of another make under the right key."""
    kernel: Dispatcher = unloadable_kernel
    cache = kernel._cache
    key = cache._index_key((types.int64,), kernel.targetctx.codegen())
    cache._impl.locator.ensure_cache_path()
    cache._cache_file.save(key, ("an", "entry"))
    return int(kernel(1))


def control_flow() -> Value:
    return int(controlled_kernel(1, 2))


def another(n: int) -> Value:
    @njit(cache=True)
    def kernel(x: int) -> int:
        return x + n

    return int(kernel(1))


def quick(n: int) -> object:
    """Ask a dispatcher that may not compile any more, which refuses at once, under its lock."""

    @njit
    def jitted(x: int) -> int:
        return x + n

    kernel: Dispatcher = jitted
    kernel._can_compile = False
    try:
        kernel.compile((types.int64,))
    except RuntimeError:
        return jitted
    raise AssertionError("a dispatcher that may not compile has compiled")


def on_launch() -> list[Any]:
    return [main_kernel]
