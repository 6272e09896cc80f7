"""Train a small transformer block with torch.compile: a forward graph, a backward graph, and their kernels.

The first run compiles them all; a second one loads both graphs before the first step.
"""

# Torch is half typed.
# mypy: disable-error-code="no-untyped-call"
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn

WIDTH, HEADS, WORDS, STEPS = 32, 4, 12, 3


class Block(nn.Module):
    """Attention and a feed-forward layer, each with a residual around it."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(WIDTH)
        self.projections = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.before_layers = nn.LayerNorm(WIDTH)
        self.layers = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Any) -> Any:
        batch, words, _ = x.shape
        parts = self.projections(self.before_attention(x)).chunk(3, dim=-1)
        query, key, value = (part.view(batch, words, HEADS, -1).transpose(1, 2) for part in parts)
        attention = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(attention.transpose(1, 2).reshape(batch, words, WIDTH))
        return x + self.layers(self.before_layers(x))


def main() -> int:
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    block = Block().to(device)
    optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
    compiled: Any = torch.compile(block)
    batch = torch.randn(2, WORDS, WIDTH, device=device)
    for step in range(STEPS):
        loss = (compiled(batch) - batch.roll(1, dims=1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
