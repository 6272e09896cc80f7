"""Why the trips of one kernel were compiled, for people."""

from __future__ import annotations

from typing import IO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from otel_kernel.report.console import console_on
from otel_kernel.report.explanation import SHOWN, ExplainedTrip, Explanation
from otel_kernel.report.history import Record
from otel_kernel.report.reasons import sentence
from otel_kernel.report.words import count, duration, moment, safe


def print_explanation(explanation: Explanation, file: IO[str]) -> None:
    """Print each trip with its reason and what it was compared with."""
    with console_on(file) as console:
        console.print(_head(explanation))
        for trip in explanation.trips:
            _print_trip(trip, console)


def _head(explanation: Explanation) -> str:
    head = f"{count(explanation.records, 'record')}, {explanation.loaded} loaded"
    if not explanation.trips:
        return f"{head}: nothing to explain."
    shown = len(explanation.trips)
    return f"{head}; the newest {SHOWN} that were not:" if shown == SHOWN else f"{head}."


def _print_trip(trip: ExplainedTrip, console: Console) -> None:
    kernel, record = trip.kernel, trip.record
    layer = "" if kernel.layer == kernel.runtime else f", {safe(kernel.layer)}"
    console.print(
        Text.assemble(
            "\n", (safe(kernel.kernel), "bold"), f" {safe(record.specialization or '')}".rstrip(), layer
        )
    )
    lines = [f"{record.outcome} in {duration(record.duration_ns)}, {_which(record)}"]
    if trip.why is None:
        lines.append("found in the store")
    else:
        lines.append(sentence(trip.why))
        if record.reason:
            lines.append(f"the runtime says: {safe(record.reason)}")
        if trip.why.earlier is not None:
            lines.append(f"compared with {_which(trip.why.earlier)}, {trip.why.earlier.outcome}")
    for line in lines:
        console.print(Padding(Text(line), (0, 0, 0, 2)))
    for line in trip.ir_difference or ():
        console.print(Padding(Text(safe(line, keep="\t"), style="dim"), (0, 0, 0, 4)))


def _which(record: Record) -> str:
    host = f" on {safe(record.host)}" if record.host else ""
    return f"{record.session[:8]}:{record.seq} at {moment(record.started_ns)}{host}"
