"""Compile what a program had to compile while it served, so that its store has it at the next start.

    otel-kernel warmup-list --json > warmup.json
    python examples/warm_up.py warmup.json shop.pricing shop.model

The modules are those that hold the kernels. Functions of Numba need `cache=True`, JAX its folder
(JAX_COMPILATION_CACHE_DIR), and the store must be the one that the program uses. What cannot be compiled from the
list alone, such as a graph of torch, is named: call it with such arguments before serving.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

ARRAY = re.compile(r"array\((\w+), (\d+)d, ([CFA])\)")
TENSOR = re.compile(r"(\w+)\[([\d,]*)\]")
DTYPES = {"f": "float", "bf": "bfloat", "i": "int", "ui": "uint"}


def numba_compile(function: Any, one: dict[str, Any]) -> None:
    types = import_module("numba").types
    signature = ARRAY.sub(r"Array(\1, \2, '\3')", one["components"].get("signature", one["specialization"]))
    function.compile(eval(signature, vars(types)))


def jax_compile(function: Any, one: dict[str, Any]) -> None:
    jax = import_module("jax")
    arguments, _, more = one["specialization"].partition(")")
    if more or arguments.endswith("..."):
        raise ValueError("buffers are donated, there are several devices, or the list of arguments is cut")
    specs = [
        jax.ShapeDtypeStruct(tuple(map(int, filter(None, shape.split(",")))), jax_dtype(name))
        for name, shape in TENSOR.findall(arguments)
    ]
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    jitted.lower(*specs).compile()


def jax_dtype(name: str) -> str:
    if name == "i1":
        return "bool"
    kind, bits = re.fullmatch(r"([a-z]+)(\d+)", name).groups()  # type: ignore[union-attr] # StableHLO's names
    return f"{DTYPES[kind]}{bits}"


def triton_compile(function: Any, one: dict[str, Any]) -> None:
    triton, compiler = import_module("triton"), import_module("triton.compiler")
    parts = one["components"]
    signature, constants, attributes = (
        ast.literal_eval(parts[name]) for name in ("signature", "constants", "attributes")
    )
    source = compiler.ASTSource(
        fn=function,
        signature=signature,
        constexprs={path: ast.literal_eval(value) for path, value in constants.items()},
        attrs=attributes,
    )
    options = {name: int(parts[name]) for name in ("num_warps", "num_stages", "num_ctas")}
    triton.compile(source, options=options)


COMPILE = {"numba": numba_compile, "jax": jax_compile, "triton": triton_compile}


def find(kernel: dict[str, Any], modules: list[ModuleType]) -> Any:
    """Return the function of a kernel: the module with its file has it, by the last part of its name."""
    name = (kernel["function"] or "").rpartition(".")[2]
    for module in modules:
        if getattr(module, "__file__", None) == kernel["file"] and hasattr(module, name):
            return getattr(module, name)
    raise LookupError(f"none of the modules has {name} of {kernel['file']}")


def main() -> int:
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - an example
        kernels = json.load(file)["kernels"]
    modules = [import_module(name) for name in sys.argv[2:]]
    failed = 0
    for kernel in kernels:
        for one in kernel["specializations"]:
            what = f"{kernel['kernel']} {one['specialization']}"
            try:
                if kernel["runtime"] not in COMPILE:
                    raise LookupError("call it with such arguments")
                COMPILE[kernel["runtime"]](find(kernel, modules), one)
            except Exception as error:
                failed += 1
                print(f"not compiled: {what}: {error}")
            else:
                print(f"compiled: {what}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
