"""What to compile before a program serves, for people."""

from __future__ import annotations

from typing import IO

from rich.padding import Padding
from rich.text import Text

from otel_kernel.report.console import console_on
from otel_kernel.report.warmup import WarmupKernel, WarmupList
from otel_kernel.report.words import count, duration, safe


def print_warmup_list(found: WarmupList, file: IO[str]) -> None:
    """Print each kernel with the specializations that were compiled, the ones that took most time first."""
    when = "in all" if found.phase is None else f"in phase {safe(found.phase)}"
    with console_on(file) as console:
        if not found.kernels:
            console.print(f"Nothing of the program was compiled {when}.")
        for each in found.kernels:
            layer = "" if each.kernel.layer == each.kernel.runtime else f", {safe(each.kernel.layer)}"
            console.print(
                Text.assemble((safe(each.kernel.kernel), "bold"), f", {each.kernel.runtime}{layer}")
            )
            place = _place(each)
            if place:
                console.print(Padding(Text(place), (0, 0, 0, 2)))
            for one in each.specializations:
                what = f"{safe(one.specialization or 'specialization unknown')}"
                cost = f"{duration(one.duration_ns)} in {count(one.trips, 'trip')}"
                on = f", {safe(one.target)}" if one.target else ""
                console.print(Padding(Text(what), (0, 0, 0, 2)))
                console.print(Padding(Text(f"{cost}{on}", style="dim"), (0, 0, 0, 6)))
        if found.kernels:
            number = sum(len(each.specializations) for each in found.kernels)
            spent = duration(sum(each.duration_ns for each in found.kernels))
            console.print(
                f"\n{count(number, 'specialization')} of {count(len(found.kernels), 'kernel')} compiled {when}, "
                f"{spent} added up."
            )
        if found.internal:
            console.print(f"{count(found.internal, 'internal function')} of the runtimes left out.")


def _place(each: WarmupKernel) -> str:
    if each.file is None:
        return ""
    return safe(f"{each.file}:{each.line}" if each.line is not None else each.file)
