"""Serve a transformer block with torch.compile: warm up, then answer requests of any length.

The second length of all makes torch compile again, now for every length, and its trip says so
(`compilation.reason`). With `otel_kernel.phase("serving")` from then on, a kernel that is compiled while users
wait can be told from those of the start.
"""

# Torch is half typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from typing import Any

import torch
from torch_training import WIDTH, Block

import otel_kernel

LENGTHS = (7, 9, 12, 31)


def main() -> int:
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model: Any = torch.compile(Block().eval().to(device))
    with torch.inference_mode():
        for words in (8, 16):
            model(torch.randn(1, words, WIDTH, device=device))
        otel_kernel.phase("serving")
        for words in LENGTHS:
            answer = model(torch.randn(1, words, WIDTH, device=device))
            print(f"{words} words: {answer.abs().mean().item():.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
