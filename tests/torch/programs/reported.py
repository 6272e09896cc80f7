"""What users of torch.compile have reported, and could not find the cause of."""

# Torch is half typed.
# mypy: disable-error-code="misc,untyped-decorator"
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import shutil
import warnings
from typing import Any

import parts
import torch
import torch._functorch.config as functorch
import torch._inductor.config as inductor
from parts import part
from roads import STORE, compiled, remove_libraries, same_wave, wave

X = torch.ones(8)


def wave_by_three(x: Any) -> Any:
    return (x.sin() + 1) * 3


def attention(query: Any, key: Any) -> Any:
    return (query @ key.t()).softmax(-1)


def main() -> None:
    with part("cold"):
        compiled(wave, X)
    with part("other inputs"):
        compiled(wave, torch.ones(8, dtype=torch.float64))
    with part("another graph"):
        compiled(wave_by_three, X)
    with part("another setting that is part of the key"), inductor.patch(max_fusion_size=32):
        compiled(wave, X)
    with part("another setting that is not"), inductor.patch(compile_threads=1):
        compiled(wave, X)
    with part("passed by"), inductor.patch(post_grad_custom_post_pass=lambda _: None):
        compiled(wave, X)
    with (
        part("store off"),
        inductor.patch(fx_graph_cache=False),
        functorch.patch(enable_autograd_cache=False),
    ):
        compiled(wave, X)
    with part("the same graph in another layer"):
        compiled(same_wave, X)
    batches()
    portable()


def batches() -> None:
    torch._dynamo.reset()
    function = torch.compile(attention)
    keys = torch.ones(4, 3)
    for size in (2, 5, 7):
        with part(f"batch of {size}"):
            function(torch.ones(size, 3), keys)


def portable() -> None:
    """Start from artifacts that an image brings, with one function that has changed since."""
    artifacts = torch.compiler.save_cache_artifacts()
    assert artifacts is not None
    for folder in ("fxgraph", "aotautograd"):
        shutil.rmtree(STORE / folder)
    remove_libraries()
    torch.compiler.load_cache_artifacts(artifacts[0])
    with part("all that is cached"):
        compiled(wave, X)
    with part("what has changed"):
        compiled(lambda x: wave(x) - 5, X)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parts.watch()
    main()
