"""What Triton's objects say of a kernel: its name, specialization, key and place."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from otel_kernel.records import digest128, escape, hex128

RUNTIME = "triton"
LAYER = "triton"

_ENTRY = re.compile(r"tt\.func\s+(?:public\s+)?@\"?([\w.$]+)|\.(?:visible|extern)\s+\.(?:entry|func)\s+(\w+)")
_GENERATED = re.compile(r"[0-9a-z]{32,}")
"""Part of a module's name that Inductor, which Helion uses too, makes of a digest."""

_MAIN_OPTIONS = ("num_warps", "num_stages", "num_ctas")
_DERIVED_OPTIONS = frozenset(
    {
        "allowed_dot_input_precisions",
        "arch",
        "backend_name",
        "default_dot_input_precision",
        "deprecated_fp8_dot_operand_dtypes",
        "extern_libs",
        "max_num_imprecise_acc_default",
        "supported_fp8_dtypes",
        "warp_size",
    }
)
"""Options that follow from the target; for a specialization only those count that somebody chose."""


def name_of(function: Any) -> str:
    """Return the name of a Python function that is a kernel, stable from one process to the next."""
    module = str(function.__module__)
    if any(_GENERATED.search(part) for part in module.split(".")):
        return str(function.__qualname__)
    return f"{module}.{function.__qualname__}"


def name_of_file(path: str) -> str:
    """Return the name of the entry function of an IR file, or the file's own where there is none."""
    try:
        entry = _ENTRY.search(Path(path).read_text(errors="replace"))
    except OSError:
        entry = None  # the compiler will say so
    return (entry[1] or entry[2]) if entry is not None else Path(path).name


def specialization(source: Any, options: Any) -> str:
    """Return arguments, constants and chosen options in one readable line.

    Args:
        source: an `ASTSource` or an `IRSource`.
        options: of the backend.
    """
    arguments = ", ".join(_arguments(source))
    chosen = " ".join(f"{name}={value}" for name, value in _chosen_options(options))
    return f"({arguments}) {chosen}".rstrip()


def _arguments(source: Any) -> Iterator[str]:
    constants: dict[Any, Any] = dict(getattr(source, "constants", {}))
    attributes: Mapping[Any, Any] = getattr(source, "attrs", {})
    for index, (name, kind) in enumerate(source.signature.items()):
        if (index,) in constants:
            yield f"{name}={_constant(constants.pop((index,)))}"
            continue
        known = "".join(
            f" {str(attribute).removeprefix('tt.')}={value}"
            for attribute, value in attributes.get((index,), ())
        )
        yield f"{name}: {kind}{known}"
    for path, value in sorted(constants.items(), key=str):  # inside of tuples
        yield f"{'.'.join(map(str, path))}={_constant(value)}"


def _constant(value: Any) -> str:
    function = getattr(value, "fn", None)  # a kernel that is handed to a kernel
    return name_of(function) if hasattr(value, "cache_key") and function is not None else str(value)


def _chosen_options(options: Any) -> Iterator[tuple[str, Any]]:
    values: Mapping[str, Any] = options.__dict__
    for name in _MAIN_OPTIONS:
        if name in values:
            yield name, values[name]
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    for name, default in sorted(defaults.items()):
        if name not in _MAIN_OPTIONS and name not in _DERIVED_OPTIONS and values[name] != default:
            yield name, values[name]


def key_texts(
    *, triton_key: str, backend: str, source: str, options: str, environment: str, entry: str | None = None
) -> tuple[str, str]:
    """Return the build text and the rest of a key.

    Args:
        triton_key: what `triton_key()` returns.
        backend: hash of the backend.
        source: hash of the source.
        options: hash of the options.
        environment: the environment variables that count, as Triton writes them.
        entry: Triton's whole key, where it holds more than these.
    """
    rest = (source, options, environment) if entry is None else (source, options, environment, entry)
    return f"{triton_key}\n{backend}", "\n".join(rest)


def build_name(version: str, triton_key: str, backend: str) -> str:
    """Return compiler and build in a readable line.

    Args:
        version: of Triton.
        triton_key: what `triton_key()` returns, which tells builds of one version apart.
        backend: hash of the backend; NVIDIA's holds the version of `ptxas`.
    """
    parts = [f"triton {version}", f"build {hex128(digest128(escape(triton_key)))[:16]}"]
    ptxas = re.search(r"release [\d.]+, (V[\d.]+)", backend)
    if ptxas is not None:
        parts.append(f"ptxas {ptxas[1]}")
    return "; ".join(parts)


def components(source: Any, options: Any, code_digest: str, parts: Mapping[str, str]) -> dict[str, str]:
    """Return the parts of a key by name, those that change most often first.

    Args:
        source: an `ASTSource` or an `IRSource`.
        options: of the backend.
        code_digest: of the kernel's code.
        parts: the parts that are texts already.
    """
    values: Mapping[str, Any] = options.__dict__
    others = sorted(name for name in values if name not in _MAIN_OPTIONS)
    return {
        "source": code_digest,
        "signature": str(dict(source.signature)),
        "constants": str(
            {path: _constant(value) for path, value in getattr(source, "constants", {}).items()}
        ),
        "attributes": str(dict(getattr(source, "attrs", {}))),
        **parts,
        **{name: _option(name, values[name]) for name in (*_MAIN_OPTIONS, *others) if name in values},
    }


def _option(name: str, value: Any) -> str:
    if name == "extern_libs":  # Triton's key has their content, not the user's paths
        return " ".join(f"{library}={Path(path).name}" for library, path in value)
    return str(value)


def line_of(error: BaseException, function: Any) -> str | None:
    """Return `file:line` of what a frontend error complains about, if it tells.

    Args:
        error: what left the compiler.
        function: the JITFunction that was compiled.
    """
    line = getattr(getattr(error, "node", None), "lineno", None)
    if line is None or getattr(error, "src", None) != function.src:
        return None
    lines, first = inspect.getsourcelines(function.fn)
    decorators = next((n for n, text in enumerate(lines) if text.lstrip().startswith("def ")), 0)
    return f"{function.fn.__code__.co_filename}:{first + decorators + line - 1}"
