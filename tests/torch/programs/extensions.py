"""Builds and loads C++ of the program's own, and a model that is compiled ahead of time."""

# Torch is half typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false
# mypy: disable-error-code="misc"

from __future__ import annotations

import ctypes
import sys
import warnings
from pathlib import Path
from typing import Any

import parts
import torch
from parts import part, raised_by
from torch.utils.cpp_extension import load

FOLDER = Path("extension").resolve()
SOURCE = Path("answer.cpp").resolve()


def answer() -> int:
    library = load("answer", [str(SOURCE)], build_directory=str(FOLDER), is_python_module=False)
    assert library is None or isinstance(library, str)
    return int(ctypes.CDLL(str(next(iter(sorted(FOLDER.glob("answer*.so")))))).answer())


def write(body: str) -> None:
    SOURCE.write_text(f'extern "C" int answer() {{ return {body}; }}\n')


def extension() -> None:
    FOLDER.mkdir(exist_ok=True)
    if not SOURCE.exists():
        write("42")
    with part("first"):
        parts.value("answer", answer())
    with part("again"):
        answer()


def changed() -> None:
    FOLDER.mkdir(exist_ok=True)
    write("42")
    answer()
    with part("another source"):
        write("43")
        answer()
    with part("wrong source"):
        write("otk_secret_marker")
        parts.value("raised", raised_by(answer))


class Wave(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x.sin() + 1


def ahead_of_time() -> None:
    program = torch.export.export(Wave(), (torch.ones(8),))
    with part("compile"):
        path = torch._inductor.aoti_compile_and_package(program, package_path=str(Path("wave.pt2").resolve()))
    with part("load"):
        model: Any = torch._inductor.aoti_load_package(path)
    with part("run"):
        parts.value("run", model(torch.zeros(8)).tolist())
    with part("no package"):
        parts.value("raised", raised_by(lambda: torch._inductor.aoti_load_package("/nowhere.pt2")))


def cuda() -> None:
    with part("no CUDA"):
        parts.value(
            "raised",
            raised_by(lambda: torch.cuda._compile_kernel('extern "C" __global__ void k() {}', "k")),
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parts.watch(level="basic")
    globals()[sys.argv[1]]()
