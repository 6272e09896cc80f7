"""Lets compiling fail, in ways that the program sees and in ways that torch handles by itself."""

# Torch is half typed.
# mypy: disable-error-code="misc,untyped-decorator"
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import parts
import torch
import torch._dynamo
from parts import part, raised_by

X = torch.ones(8)


def wave(x: Any) -> Any:
    otk_secret_marker = x.sin() + 1
    return otk_secret_marker * 2


def repeated(x: Any, text: str) -> Any:
    return x + len(text)


def branching(x: Any) -> Any:
    return x.sin() if x.sum() > 0 else x.cos()


def refuse(_graph: Any, _inputs: Any) -> Any:
    raise ValueError("otk_secret_marker")


def run(function: Any, *arguments: Any, **options: Any) -> None:
    torch._dynamo.reset()
    raised = raised_by(lambda: torch.compile(function, **options)(*arguments))
    parts.value(f"raised in {parts.current()}", raised)


def frames() -> None:
    """Frames that Dynamo gives up, and frames that fail."""
    import torch._dynamo.config as dynamo

    with part("recompile limit"), dynamo.patch(recompile_limit=2):
        torch._dynamo.reset()
        function = torch.compile(repeated, dynamic=False)
        for text in ("a", "bb", "ccc", "dddd"):
            function(X, text)
    with part("a whole graph that breaks"):
        run(branching, X, fullgraph=True)
    with part("a backend that refuses"):
        run(wave, X, backend=refuse)
    with part("a backend that refuses, suppressed"), dynamo.patch(suppress_errors=True):
        run(wave, X, backend=refuse)


def compilers() -> None:
    """Graphs that fail in Inductor."""
    import torch._dynamo.config as dynamo
    import torch._inductor.config as inductor

    with part("no compiler"), inductor.patch({"cpp.cxx": (None, "/nowhere/g++")}):
        run(wave, X)
    with (
        part("no compiler, suppressed"),
        inductor.patch({"cpp.cxx": (None, "/nowhere/g++")}),
        dynamo.patch(suppress_errors=True),
    ):
        run(wave, X)
    compiler = Path("compiler")
    compiler.write_text('#!/bin/sh\ncase "$*" in *main.cpp*) exit 1;; esac\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    with part("a compiler that fails"), inductor.patch({"cpp.cxx": (None, str(compiler.resolve()))}):
        run(lambda x: (x.tan() - 7, x.cumsum(0)), X)


def damaged() -> None:
    """Load a library that is none."""
    with part("first"):
        run(wave, X)


def restarts() -> None:
    """Let the frame be analysed again from its start, which Dynamo does by an exception."""

    def restarting(x: Any) -> Any:
        values = [x.sin()]
        torch._dynamo.graph_break()
        values.append(x.cos())
        return values[0] + values[1]

    with part("restart"):
        run(restarting, X)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parts.watch(level=sys.argv[2] if len(sys.argv) > 2 else "basic")
    globals()[sys.argv[1]]()
