"""Launches kernels of Triton on a device that is not there: some compile, one is there already."""

# Triton has no types that say enough.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import triton_kernels as kernels
from triton_device import floats

for size in (64, 128):
    kernels.scale[(1,)](floats(64), size=size)
kernels.shift[(1,)](floats(64), 2, size=64)
