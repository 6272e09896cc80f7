"""Graphs of torch.compile with one C++ kernel each."""

# Torch is half typed.
# mypy: disable-error-code="untyped-decorator"
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownParameterType=false, reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import torch
import torch._inductor.config

from conformance.adapter import Value

torch.set_num_threads(1)  # a forked child has none of the others
X = torch.zeros(8)


@torch.compile
def main_kernel(x: Any) -> Any:
    otk_secret_marker = x.sin()
    return otk_secret_marker  # noqa: RET504 - a name that no telemetry may hold


@torch.compile
def second_kernel(x: Any) -> Any:
    return x.cos()


@torch.compile
def unstored_kernel(x: Any) -> Any:
    return x.exp()


def main() -> Value:
    return float(main_kernel(X)[0])


def second() -> Value:
    return float(second_kernel(X)[0])


def unstored() -> Value:
    with torch._inductor.config.patch(force_disable_caches=True):
        return float(unstored_kernel(X)[0])


def failing() -> Value:
    raise AssertionError("a kernel fails inside of its graph, and the trip of the graph tells of it")


def unloadable() -> Value:
    raise AssertionError("a kernel fails inside of its graph, and the trip of the graph tells of it")


def control_flow() -> Value:
    return 0


def another(n: int) -> Value:
    @torch.compile(dynamic=False)
    def kernel(x: Any) -> Any:
        return x + n

    return float(kernel(X)[0])


def quick(_n: int) -> object:
    raise AssertionError("a kernel is compiled inside of its graph")


def on_launch() -> list[Any]:
    return [main_kernel]
