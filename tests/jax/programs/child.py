"""A program that compiles, and a child of it that compiles too; the argument is how the child starts."""

from __future__ import annotations

import multiprocessing
import os
import sys

import jax
import numpy as np
import reporting


def parent(x):  # type: ignore[no-untyped-def] # JAX's
    return x + 1


def child(x):  # type: ignore[no-untyped-def] # JAX's
    return x + 2


def compile_parent() -> None:
    jax.jit(parent).lower(np.ones(3, np.float32)).compile()


def compile_child() -> None:
    jax.jit(child).lower(np.ones(3, np.float32)).compile()


def spawned() -> None:
    reporting.report()
    compile_child()


def main(start: str) -> None:
    reporting.report()
    if start == "spawn":
        compile_parent()
        process = multiprocessing.get_context("spawn").Process(target=spawned)
        process.start()
        process.join()
        sys.exit(process.exitcode or 0)
    # Before XLA starts its threads, which a child would wait for in vain.
    pid = os.fork()
    if pid == 0:
        compile_child()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    compile_parent()
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1])
