"""Trips read back from wherever they were written to."""

from __future__ import annotations

from otel_kernel.inputs.opening import Input, open_input
from otel_kernel.inputs.problems import InputError, Problem

__all__ = ["Input", "InputError", "Problem", "open_input"]
