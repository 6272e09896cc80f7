"""A program with a kernel of its own and one for its child, which goes about it in the way it is told.

Every compile prints a line, so that one that was not recorded can be told from one that never was.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

PYTHON = sys.executable
CHILD = [str(Path(__file__).resolve()), "child"]


def kernel(x: int) -> int:
    return x + 1


def child_kernel(x: int) -> int:
    return x + 2


def compile_kernel() -> None:
    _compile("kernel")


def compile_child_kernel(_: int = 0) -> None:
    _compile("child_kernel")


def _compile(name: str) -> None:
    from numba import njit

    njit("int64(int64)")(globals()[name])
    print("compiled", name, flush=True)


def die(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    signal.pause()


def start_child(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    process = context.Process(target=compile_child_kernel)
    process.start()
    process.join()


def fork() -> None:
    pid = os.fork()
    if pid == 0:
        compile_child_kernel()
        os._exit(0)
    os.waitpid(pid, 0)


def compile_in_a_thread() -> None:
    thread = threading.Thread(target=compile_child_kernel)
    thread.start()
    thread.join()


def compile_in_a_pool() -> None:
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(compile_child_kernel, [0]))


def run(way: str = "alone") -> None:
    """Compile in this process, then go the `way`."""
    if way == "child":
        compile_child_kernel()
        return
    if way == "atexit":
        atexit.register(compile_child_kernel)
    compile_kernel()
    match way:
        case "subprocess":
            subprocess.run([PYTHON, *CHILD], check=True)
        case "subprocess -E" | "subprocess -I":
            subprocess.run([PYTHON, way[-2:], *CHILD], check=True)
        case "subprocess in a cleaned environment":
            subprocess.run([PYTHON, *CHILD], check=True, env={"PATH": os.environ["PATH"]})
        case "subprocess with PYTHONPATH replaced":
            subprocess.run([PYTHON, *CHILD], check=True, env={**os.environ, "PYTHONPATH": "/"})
        case "fork" | "spawn" | "forkserver":
            start_child(way)
        case "pool":
            compile_in_a_pool()
        case "os.fork":
            fork()
        case "exec":
            os.execv(PYTHON, [PYTHON, *CHILD])
        case "os._exit":
            os._exit(5)
        case "exit":
            sys.exit(3)
        case "raise":
            raise ValueError("the program's own error")
        case "SIGINT" | "SIGTERM" | "SIGKILL":
            die(signal.Signals[way])
        case "thread":
            compile_in_a_thread()
        case _:
            pass


if __name__ == "__main__":
    run(*sys.argv[1:])
