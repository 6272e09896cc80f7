"""Every order in which a program can import a runtime and instrument it, each in a process of its own.

What counts is what a compile tells at the end of an order, and after each step on the way: one trip where
the instrumentor is on, none where it is off, whoever came first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

import otel_kernel

ROOT = Path(otel_kernel.__file__).parents[1]

IMPORT, ON, OFF = "import", "instrument", "uninstrument"

Order = tuple[str, ...]

ORDERS: list[Order] = sorted(
    {
        *permutations((IMPORT, ON)),
        *permutations((IMPORT, ON, OFF)),
        *permutations((IMPORT, ON, ON, OFF)),
        (ON, OFF) * 3 + (IMPORT,),
        (ON, OFF) * 3 + (ON, IMPORT),
        (IMPORT, *(ON, OFF) * 3),
        (IMPORT, *(ON, OFF) * 3, ON),
        (ON, IMPORT, *(OFF, ON) * 3),
        (OFF, IMPORT, OFF, ON),
    }
)


@dataclass(frozen=True)
class Program:
    """A program that compiles with one runtime."""

    module: str
    """What it imports."""
    instrumentor: str
    """`module:Class`, or `module:function` that returns the instrumentor."""
    compile: str
    """Statements that compile one more kernel, in a namespace that has `module` and `number`, the number of
    kernels before. They make exactly one trip where the runtime is instrumented."""
    path: Sequence[Path] = ()
    """Folders to import from, before the repository and its tests."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the environment."""


def expected(order: Order) -> list[int | None]:
    """Return after each step the number of trips of one compile, or None before the import."""
    imported = on = False
    counts: list[int | None] = []
    for step in order:
        imported = imported or step == IMPORT
        on = step == ON if step != IMPORT else on
        counts.append(int(on) if imported else None)
    return counts


def observed(program: Program, order: Order) -> tuple[list[int | None], str]:
    """Run a program that takes the steps of an order.

    Returns:
        After each step the number of trips of one compile, or None before the import; and what was written
        on the standard error.
    """
    done = subprocess.run(
        [sys.executable, "-m", "order_matrix", program.module, program.instrumentor, program.compile, *order],
        env={
            **os.environ,
            **program.variables,
            "PYTHONPATH": os.pathsep.join(map(str, (*program.path, ROOT, ROOT / "tests"))),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    counts: list[int | None] = json.loads(done.stdout)
    return counts, done.stderr


def _main(module: str, instrumentor: str, code: str, *order: str) -> None:
    from importlib import import_module

    from telemetry import CollectingSink

    from otel_kernel import faults, pipeline

    faults.reraise = True
    sink = CollectingSink()
    pipeline.add_sink(sink)
    where, _, name = instrumentor.partition(":")
    made = getattr(import_module(where), name)()
    namespace: dict[str, object] = {}
    counts: list[int | None] = []
    for number, step in enumerate(order):
        if step == IMPORT:
            namespace["module"] = import_module(module)
        elif step == ON:
            made.instrument()
        else:
            made.uninstrument()
        if not namespace:
            assert module not in sys.modules, f"{step} has imported {module}"
            counts.append(None)
            continue
        sink.trips.clear()
        namespace["number"] = number
        exec(code, namespace)
        counts.append(len(sink.trips))
    print(json.dumps(counts))


if __name__ == "__main__":
    _main(*sys.argv[1:])
