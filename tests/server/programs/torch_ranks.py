"""A rank of a torchrun job on CPUs, which has three kernels in common with the others.

`together` is compiled by all ranks at once: nobody is through before all have begun. `first` is compiled by rank 0
and then found in the store by the others. `late` takes every other rank until rank 0 has it.
"""

# Runtimes are half typed.
# mypy: disable-error-code="misc,no-any-return,untyped-decorator"
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from numba import njit
from numba.extending import overload


def meet(x: int) -> int:
    raise NotImplementedError


def wait_for_rank_0(x: int) -> int:
    raise NotImplementedError


@overload(meet)
def _meet(x):  # type: ignore[no-untyped-def] # Numba wants the same annotations on what this returns
    # Numba calls this while it compiles the caller.
    dist.barrier()
    return lambda x: x + 1


@overload(wait_for_rank_0)
def _wait_for_rank_0(x):  # type: ignore[no-untyped-def] # as above
    if dist.get_rank() != 0:
        dist.barrier()
    return lambda x: x + 2


def together(x: int) -> int:
    return meet(x)


def late(x: int) -> int:
    return wait_for_rank_0(x)


def first(x: Any) -> Any:
    return x.sin() + 1


def main() -> None:
    dist.init_process_group("gloo")
    njit("int64(int64)")(together)

    for rank in range(dist.get_world_size()):
        if dist.get_rank() == rank:
            torch.compile(first)(torch.ones(8))
        dist.barrier()

    njit("int64(int64)")(late)
    if dist.get_rank() == 0:
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
