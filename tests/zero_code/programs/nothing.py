"""Uses no runtime. Says what is imported of runtimes and of ours, and which threads run."""

from __future__ import annotations

import sys
import threading

runtimes = {"jax", "jaxlib", "llvmlite", "numba", "numpy", "torch", "triton"}
print("runtimes:", *sorted(runtimes & sys.modules.keys()))
heavy = {"otel_kernel.otlp", "otel_kernel.recording", "otel_kernel.start_events", "sqlite3"}
print("ours:", *sorted(heavy & sys.modules.keys()))
print("instrumented:", "otel_kernel.instrumentors.numba" in sys.modules)
print("threads:", [thread.name for thread in threading.enumerate() if "otel_kernel" in thread.name])
