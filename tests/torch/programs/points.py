"""Imports all modules that have a point, and says which points are missing."""

from __future__ import annotations

import importlib
import warnings

import torch

from otel_kernel import faults
from otel_kernel.instrumentors.torch import TorchInstrumentor
from otel_kernel.instrumentors.torch.points import POINTS

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    faults.reraise = True
    instrumentor = TorchInstrumentor()
    instrumentor.instrument()
    for point in POINTS:
        importlib.import_module(point.module)
    print(torch.__version__, len(POINTS), instrumentor.state_of_points(), *instrumentor.missing_points())
    assert {"patched": len(POINTS), "missing": 0} == instrumentor.state_of_points()
    instrumentor.uninstrument()
