"""Graphs of torch.compile that are calls of a library, so that no compiler of C++ is needed."""

# Torch is half typed.
# mypy: disable-error-code="untyped-decorator"
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownParameterType=false, reportPrivateUsage=false

from __future__ import annotations

import logging
from typing import Any

import torch
import torch._dynamo.config
import torch._inductor.config
from torch._logging._internal import set_logs

from conformance.adapter import Value

set_logs(all=logging.CRITICAL)  # torch writes a graph that fails to the standard error
torch.set_num_threads(1)  # a forked child has none of the others
X = torch.ones(4, 4)


@torch.compile
def main_kernel(x: Any) -> Any:
    otk_secret_marker = x @ x
    return otk_secret_marker  # noqa: RET504 - a name that no telemetry may hold


@torch.compile
def second_kernel(x: Any) -> Any:
    return (x @ x) @ x


@torch.compile
def unstored_kernel(x: Any) -> Any:
    return torch.mm(x, x.t())


@torch.compile
def failing_kernel(x: Any) -> Any:
    return (x.t() @ x) @ x


@torch.compile
def controlled_kernel(x: Any) -> Any:
    return x @ (x @ x.t())


def _pass(_graph: Any) -> Any:
    """Be a pass over the graph that is wrong."""
    return otk_secret_marker  # type: ignore[name-defined] # noqa: F821 # pyright: ignore[reportUndefinedVariable] - that is what fails


def main() -> Value:
    return float(main_kernel(X)[0, 0])


def second() -> Value:
    return float(second_kernel(X)[0, 0])


def unstored() -> Value:
    with torch._inductor.config.patch(fx_graph_cache=False):
        return float(unstored_kernel(X)[0, 0])


def failing() -> Value:
    with torch._inductor.config.patch(post_grad_custom_post_pass=_pass):
        return float(failing_kernel(X)[0, 0])


def unloadable() -> Value:
    """Do nothing: an entry that cannot be read is compiled anew."""
    return 0


def control_flow() -> Value:
    """Run as plain Python where the compiler fails."""
    with (
        torch._dynamo.config.patch(suppress_errors=True),
        torch._inductor.config.patch(post_grad_custom_post_pass=_pass),
    ):
        return float(controlled_kernel(X)[0, 0])


def another(n: int) -> Value:
    @torch.compile(dynamic=False)
    def kernel(x: Any) -> Any:
        return x @ x

    return float(kernel(torch.ones(n + 5, n + 5))[0, 0])


class _Nowhere(str):
    """A path that can be weakly referenced."""


def quick(n: int) -> object:
    """Load a library that is not there."""
    from torch._inductor.codecache import CppCodeCache

    path = _Nowhere(f"/nowhere/{n}.so")
    try:
        CppCodeCache._load_library(path, "nowhere")
    except OSError:
        return path
    raise AssertionError("a library that is not there was loaded")


def on_launch() -> list[Any]:
    return [main_kernel]
