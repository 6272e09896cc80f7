"""Compiles one kernel of acme here and one in a child that is made as the first argument says."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

import acme


def child() -> None:
    """Compile the child's kernel."""
    acme.build("child")


if __name__ == "__main__":
    how = sys.argv[1]
    acme.build("parent")
    if how == "subprocess":
        code = "import acme; acme.build('child')"
        subprocess.run([sys.executable, "-c", code], check=True)
    elif how == "spawn":
        process = multiprocessing.get_context("spawn").Process(target=child)
        process.start()
        process.join()
        sys.exit(process.exitcode)
    elif how == "fork and leave":
        if os.fork() == 0:
            child()
            os._exit(0)
        os.wait()
    elif how == "fork and flush":
        if os.fork() == 0:
            from opentelemetry import trace

            child()
            provider = trace.get_tracer_provider()
            provider.force_flush()  # type: ignore[attr-defined] # the SDK's
            os._exit(0)
        os.wait()
