"""Boots otel-kernel in an interpreter that reads no `.pth` of ours, then makes room for the next one.

`otel-kernel run` puts this folder first on PYTHONPATH, so every Python of the program imports this file,
also one that otel-kernel is not installed for and one of an old version: plain syntax only.
"""

import os
import sys

if os.environ.get("OTEL_KERNEL_BOOT") == "1":
    try:
        from otel_kernel.boot import start

        start()
    except (ImportError, SyntaxError):
        try:
            # Only one interpreter of the program can make this file, so the line comes once.
            word = os.environ.get("OTEL_KERNEL_BOOTED", os.devnull) + "/foreign"
            os.close(os.open(word, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            sys.stderr.write(
                "otel-kernel: "
                + sys.executable
                + " cannot import otel-kernel, so its kernels are not recorded; "
                "install it there: " + sys.executable + " -m pip install otel-kernel\n"
            )
        except Exception:
            pass  # somebody has said so, or nobody can hear it

# The program's own sitecustomize takes the place of this one. Where there is none, the ImportError goes on
# to the interpreter, which expects it. Either way the program finds what it would find without us.
folder = __file__.rpartition("/")[0]
sys.path[:] = [entry for entry in sys.path if entry != folder]
ours = sys.modules.pop("sitecustomize", None)  # kept from being collected while it runs
__import__("sitecustomize")
