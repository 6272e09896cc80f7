"""The shape `carry`: work that a runtime hands to another thread keeps the context it was given in."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from opentelemetry import context as otel_context

from otel_kernel import faults
from otel_kernel.patching import Point, Shape, WrapperFunction
from otel_kernel.trip import OWN_VARIABLES


def carry(parameter: str, *variables: ContextVar[Any]) -> Shape:
    """Make the function that a call hands to another thread run in the context of the call.

    Of Python's own context only OpenTelemetry's and ours go along: the program's stays as it was.

    Args:
        parameter: the parameter that takes the function.
        *variables: what readers of this runtime leave for each other, to go along too; each has a default.

    Example:
        >>> Point("acme.pool", "Pool.submit", carry("job"), ("job",))
    """

    def bind(_runtime: str, point: Point, positions: Mapping[str, int]) -> WrapperFunction:
        where = f"the context of {point}"

        def wrapper(
            wrapped: Callable[..., Any], _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> Any:
            try:
                args, kwargs = _replaced(args, kwargs, parameter, positions, variables)
            except Exception:
                faults.caught(where)
            return wrapped(*args, **kwargs)

        return wrapper

    return bind


def _replaced(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    parameter: str,
    positions: Mapping[str, int],
    variables: tuple[ContextVar[Any], ...],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if parameter in kwargs:
        return args, {**kwargs, parameter: _carried(kwargs[parameter], variables)}
    position = positions.get(parameter, len(args))
    if position >= len(args):
        return args, kwargs
    return (*args[:position], _carried(args[position], variables), *args[position + 1 :]), kwargs


def _carried(function: Callable[..., Any], variables: tuple[ContextVar[Any], ...]) -> Callable[..., Any]:
    """Return a function that does the same on any thread, in the context that this code has now."""
    context = otel_context.get_current()
    values = [(variable, variable.get()) for variable in (*OWN_VARIABLES, *variables)]

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        token = otel_context.attach(context)
        tokens = [(variable, variable.set(value)) for variable, value in values]
        try:
            return function(*args, **kwargs)
        finally:
            for variable, variable_token in tokens:
                variable.reset(variable_token)
            otel_context.detach(token)

    return run
