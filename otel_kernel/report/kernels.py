"""What names a kernel, and the instances of it."""

from __future__ import annotations

from typing import NamedTuple


class Kernel(NamedTuple):
    """What several instances are of."""

    runtime: str
    layer: str
    kernel: str


class Instance(NamedTuple):
    """What tells the instances of one kernel apart."""

    identity: str | None
    specialization: str | None
