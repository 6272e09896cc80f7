"""Goes every road to a graph, one after the other, in one process."""

# Torch is half typed.
# mypy: disable-error-code="misc,untyped-decorator"
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import os
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import parts
import torch
import torch._dynamo
from parts import part

STORE = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
X = torch.ones(8)


def wave(x: Any) -> Any:
    otk_secret_marker = x.sin() + 1
    return otk_secret_marker * 2


def same_wave(x: Any) -> Any:
    return (torch.sin(x) + 1) * 2


def broken(x: Any) -> Any:
    x = x.cos() + 1
    torch._dynamo.graph_break()
    return x.exp()


def split(x: Any) -> Any:
    return x.sigmoid() if x.shape[0] <= 20 else torch.sigmoid(x)


def half(x: Any) -> Any:
    return x.rsqrt() - 3


@torch._dynamo.allow_in_graph
def allowed(x: Any) -> Any:
    return x.rsqrt()


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 8)

    def forward(self, x: Any) -> Any:
        return torch.nn.functional.gelu(self.linear(x))


def compiled(function: Any, *arguments: Any, **options: Any) -> Any:
    """Compile anew, as far as Dynamo's memory goes."""
    torch._dynamo.reset()
    return torch.compile(function, **options)(*arguments)


def forget_libraries() -> None:
    """Leave no kernel in memory, as in a new process."""
    from torch._inductor.codecache import CppPythonBindingsCodeCache

    CppPythonBindingsCodeCache.cache_clear()


def settings() -> tuple[Any, Any]:
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    return inductor, functorch


def stored(folder: str) -> list[Path]:
    return [path for path in (STORE / folder).rglob("*") if path.is_file() and not path.name.startswith(".")]


def usual() -> None:
    with part("first"):
        parts.value("wave", compiled(wave, X).tolist())
    function = torch.compile(wave)
    with part("again"):
        for _ in range(50):
            function(X)
    with part("another size"):
        function(torch.ones(9))
    with part("dynamic size again"):
        function(torch.ones(11))
    with part("after a reset"):
        compiled(wave, X)
    torch.manual_seed(0)
    block = torch.compile(Block())
    with part("training forward"):
        result = block(torch.ones(2, 4))
    with part("training backward"):
        result.sum().backward()
    with part("graph break"):
        compiled(broken, X)
    with part("no kernel"):
        compiled(lambda a: a @ a, torch.ones(4, 4))
    with part("nothing to compile"):
        compiled(lambda a: a, X)


def stores() -> None:
    inductor, functorch = settings()
    with part("cold"):
        compiled(wave, X)
    with part("autograd store wiped"):
        shutil.rmtree(STORE / "aotautograd")
        compiled(wave, X)
    with part("another frame, the same graph"):
        compiled(same_wave, X)
    with part("graph store wiped, kernels in memory"):
        shutil.rmtree(STORE / "fxgraph")
        compiled(wave, X)
    with part("graph store wiped, kernels stored"):
        shutil.rmtree(STORE / "fxgraph")
        forget_libraries()
        compiled(wave, X)
    with part("graph store wiped, and the kernel"):
        shutil.rmtree(STORE / "fxgraph")
        remove_libraries()
        compiled(wave, X)
    with part("graph damaged"):
        for path in stored("fxgraph"):
            path.write_bytes(path.read_bytes()[:50])
        compiled(wave, X)
    with part("library deleted"):
        remove_libraries()
        compiled(wave, X)
    with part("a setting that is part of the key"), inductor.patch(max_fusion_size=32):
        compiled(wave, X)
    with part("a setting that is not"), inductor.patch(compile_threads=1):
        compiled(wave, X)
    with part("all caches disabled"), inductor.patch(force_disable_caches=True):
        compiled(half, X)
    with (
        part("both stores of graphs off"),
        inductor.patch(fx_graph_cache=False),
        functorch.patch(enable_autograd_cache=False),
    ):
        compiled(half, X)
    with part("autograd store off"), functorch.patch(enable_autograd_cache=False):
        compiled(half, X)
    with part("a graph that cannot be stored"), inductor.patch(post_grad_custom_post_pass=lambda _: None):
        compiled(half, X)
    with part("a graph that AOTAutograd cannot store"):
        compiled(lambda x: allowed(x) - 3, X)
    with part("small sizes"):
        compiled(split, torch.ones(10), dynamic=True)
    with part("large sizes"):
        compiled(split, torch.ones(40), dynamic=True)
    with part("small sizes again"):
        compiled(split, torch.ones(12), dynamic=True)


def remove_libraries() -> None:
    forget_libraries()
    for path in STORE.glob("*/*.main.so"):
        path.unlink()


def step(weight: Any) -> Any:
    return (weight @ weight).exp().sum()


def train() -> Any:
    weight = torch.ones(4, 4, requires_grad=True)
    return compiled(step, weight)


def bundled() -> None:
    _, functorch = settings()
    with functorch.patch(bundled_autograd_cache=True):
        for temperature in ("cold", "warm"):
            with part(f"bundled, {temperature}"):
                loss = train()
            with part(f"bundled backward, {temperature}"):
                loss.backward()


def half_lost() -> None:
    """Lose the backward's graph, so that the forward's, which is there, is of no use to AOTAutograd."""
    with part("forward"):
        loss = train()
    forward = set(stored("fxgraph"))
    with part("backward"):
        loss.backward()
    for path in set(stored("fxgraph")) - forward:
        path.unlink()
    with part("backward lost"):
        train()


def portable() -> None:
    compiled(wave, X)
    artifacts = torch.compiler.save_cache_artifacts()
    assert artifacts is not None
    for folder in ("fxgraph", "aotautograd"):
        shutil.rmtree(STORE / folder)
    remove_libraries()
    torch.compiler.load_cache_artifacts(artifacts[0])
    with part("from artifacts"):
        compiled(wave, X)


def wrapper() -> None:
    inductor, _ = settings()
    with inductor.patch(cpp_wrapper=True):
        with part("C++ wrapper"):
            compiled(wave, X)
        forget_libraries()
        with part("C++ wrapper again"):
            compiled(wave, X)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parts.watch(level=sys.argv[2] if len(sys.argv) > 2 else "full")
    globals()[sys.argv[1]]()
