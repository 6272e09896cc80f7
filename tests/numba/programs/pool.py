"""A pool of workers that are handed compiled functions, by fork and by spawn."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
from typing import Any

from conformance.harness import value, watch
from numba import njit


def made(n: int) -> Any:
    @njit
    def closure(x: int) -> int:
        return x + n

    return closure


def apply(pickled: bytes) -> list[Any]:
    """Call what was pickled: a dispatcher, and its method `compile`."""
    function, compile_ = pickle.loads(pickled)
    compile_((float_type(),))
    return [os.getpid(), function(1), len(function.signatures)]


def float_type() -> Any:
    from numba import types

    return types.float64


def main() -> None:
    watch()
    function = made(1)
    function(1)
    pickled = pickle.dumps((function, function.compile))
    method = sys.argv[1]
    initializer = watch if method == "spawn" else None  # a forked worker has inherited it
    with multiprocessing.get_context(method).Pool(1, initializer) as pool:
        value("worker", pool.apply(apply, (pickled,)))
    value("parent", os.getpid())


if __name__ == "__main__":
    main()
