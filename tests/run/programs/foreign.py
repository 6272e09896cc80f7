"""A program for an interpreter that has no otel-kernel: tells what it can import, as does its child."""

import importlib
import subprocess
import sys

for module in ("otel_kernel", "opentelemetry", "wrapt", "click"):
    try:
        importlib.import_module(module)
    except ImportError:
        continue
    print("lent", module)
print("ran", flush=True)
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "child"], check=True)
