"""How the fields of a trip are worked out from Numba's objects."""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import llvmlite.binding as llvm_binding
from numba.core import config

NUMBA = version("numba")
LLVMLITE = version("llvmlite")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
LLVM = ".".join(map(str, llvm_binding.llvm_version_info))

# Settings of the process that change the machine code and are in no key of Numba's.
_CODE_SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "ENABLE_AVX")

# Numba writes some types with the address of an object, which no other process has.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+|#[0-9a-f]{8,}(?=<)")

# Parameters of the functions that `@jitclass` generates, which have no module.
_OF_JITCLASS = {"__numba_cls_", "__numba_self_"}


class Target(NamedTuple):
    """What the machine code is for."""

    triple: str
    cpu: str
    features: str


def build_text(target: Target, *, numba: str = NUMBA, llvmlite: str = LLVMLITE, llvm: str = LLVM) -> str:
    """Return the text that names compiler and build."""
    digest = hashlib.blake2b(target.features.encode(), digest_size=8).hexdigest()
    return (
        f"numba {numba}; llvmlite {llvmlite}; LLVM {llvm}; {target.triple}; {target.cpu}; features {digest}"
    )


def key_text(*, base_name: str, stamp: str, signature: str, bytecode: str, closure: str) -> str:
    """Return the text that names an artifact of one build.

    Args:
        base_name: what the store's files of the function are named by.
        stamp: of the source, see `stamp_text`.
        signature: see `signature_text`.
        bytecode: Numba's hash of it.
        closure: Numba's hash of the values that the function closes over.
    """
    return "\n".join((base_name, stamp, signature, bytecode, closure))


def target_of(context: Any) -> Target:
    """Return the target of a target context."""
    return Target(*map(str, context.codegen().magic_tuple()))


def kernel_name(function: FunctionType) -> str:
    """Return `module.qualname`."""
    module: Any = function.__module__
    if module is None:  # made by `exec` in a namespace without a name
        code = function.__code__
        generated = _OF_JITCLASS & {*code.co_names, *code.co_varnames}
        module = "numba.experimental.jitclass" if generated else Path(code.co_filename).stem
    return f"{module}.{function.__qualname__}"


def is_internal(kernel: str) -> bool:
    """Whether a kernel is part of Numba's own library."""
    return kernel.startswith("numba.")


def signature_text(signature: Any) -> str:
    """Return a signature, or a tuple of types, readable and the same in every process.

    What the program has written as a text is the signature in Numba's key, and stays as it is.
    """
    if isinstance(signature, str):
        return signature
    arguments = getattr(signature, "args", signature)
    comma = "," if len(arguments) == 1 else ""
    text = f"({', '.join(map(_type_text, arguments))}{comma})"
    returns = getattr(signature, "return_type", None)
    return text if returns is None else f"{text} -> {_type_text(returns)}"


def _type_text(kind: Any) -> str:
    function = getattr(getattr(kind, "dispatcher", None), "py_func", None)
    if function is not None:  # a function as an argument: two lambdas have one name
        return f"dispatcher({kernel_name(function)}, code={code_digest(function.__code__)})"
    return _ADDRESS.sub("", str(kind))


def stamp_text(stamp: Any) -> str:
    """Return the stamp of the source: (mtime, size) below 0.68, from then on the sha256 of its bytes."""
    return stamp.hex() if isinstance(stamp, bytes) else str(stamp)


def options_text(options: dict[str, Any]) -> str:
    """Return the options that are not at their defaults, and the settings of the process that change code."""
    chosen = [f"{name}={options[name]!r}" for name in sorted(options) if options[name] not in (None, False)]
    settings = {name: getattr(config, name, None) for name in _CODE_SETTINGS}
    shown = [f"{name}={int(value)}" for name, value in settings.items() if value is not None]
    return " ".join(chosen + shown)


def file_digest(path: str) -> str:
    """Return the sha256 of a file's bytes, or `no file` for a notebook's cell and the like."""
    try:
        stat = Path(path).stat()
        return _file_digest(path, stat.st_mtime_ns, stat.st_size)
    except OSError:
        return "no file"


@functools.lru_cache(maxsize=256)
def _file_digest(path: str, _mtime_ns: int, _size: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def code_digest(code: CodeType, *more: object) -> str:
    """Return a digest of bytecode, names and constants, and of whatever else tells two kernels apart."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (*_code_parts(code), *map(_bytes, more)):
        digest.update(part)
        digest.update(b"\0")
    return digest.hexdigest()


def _code_parts(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield _bytes((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant)
        else:
            yield _bytes(_sorted(constant) if isinstance(constant, frozenset) else constant)


def _sorted(values: Iterable[object]) -> list[str]:
    """Return the values of a set in an order that is the same in every process."""
    return sorted(map(repr, values))


def _bytes(value: object) -> bytes:
    return repr(value).encode("utf-8", "backslashreplace")
