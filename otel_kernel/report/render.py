"""A summary for people: with colours on a terminal, and as plain text of 80 columns elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from otel_kernel.report.console import STYLES, console_on, counts_text, print_entry
from otel_kernel.report.explained import Explained
from otel_kernel.report.late import LateKernel
from otel_kernel.report.reasons import sentence
from otel_kernel.report.summary import Counts, InternalLine, KernelLine, Layer, Saved, Summary
from otel_kernel.report.words import count, duration, moment, safe, share

SHOWN_KERNELS: Final = 20
"""Kernels of a layer that are shown, by own time."""


def print_summary(summary: Summary, file: IO[str]) -> None:
    """Print a summary for people."""
    with console_on(file) as console:
        render_summary(summary, console)


def render_summary(summary: Summary, console: Console) -> None:
    """Print a summary on a console of the caller's, with its width and styles."""
    console.print(_head(summary))
    if not summary.counts.trips:
        return
    console.print(f"Time spent: {duration(summary.spent_ns)} ({_spent_means(summary.processes)})")
    if summary.saved.trips:
        console.print(f"Time saved by the store: {_saved(summary.saved)}")
    for layer in summary.layers:
        _print_layer(layer, console)
    _print_serving(summary, console)
    _print_explained(summary, console)
    _print_failed(summary, console)
    _print_unfinished(summary, console)


def _head(summary: Summary) -> Text:
    if summary.started_ns is None:
        return Text("No trips." if summary.run is None else f"No trips in run {summary.run}.")
    which = count(summary.runs, "run") if summary.run is None else f"Run {summary.run}"
    head = Text.assemble((which, "bold"))
    head.append(f", {count(summary.processes, 'process', 'processes')}, {moment(summary.started_ns)}\n")
    head.append(f"{count(summary.counts.trips, 'trip')}: ").append(counts_text(summary.counts))
    return head


def _spent_means(processes: int) -> str:
    return (
        "overlaps counted once" if processes == 1 else "overlaps in a process counted once, processes added"
    )


def _saved(saved: Saved) -> str:
    if saved.unknown == saved.trips:
        return f"unknown, no compilation of {count(saved.trips, 'loaded trip')} is at hand"
    parts = [duration(saved.ns)]
    if saved.remembered:
        parts.append(
            f"{saved.remembered} of {count(saved.trips, 'loaded trip')} by what the artifact remembers"
        )
    if saved.unknown:
        parts.append(
            f"unknown for {saved.unknown} of {count(saved.trips, 'loaded trip')} ({share(saved.unknown_share)})"
        )
    return ", ".join(parts)


def _print_layer(layer: Layer, console: Console) -> None:
    head = Text.assemble((f"\n{safe(layer.layer)}", "bold"))
    details = [count(layer.counts.trips, "trip"), f"{share(layer.counts.loaded_share)} loaded"]
    details.append(f"{duration(layer.spent_ns)} spent")
    if layer.saved.trips > layer.saved.unknown:
        details.append(f"{duration(layer.saved.ns)} saved")
    console.print(head.append(f": {', '.join(details)}"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("own time", justify="right", no_wrap=True)
    table.add_column("loaded", justify="right", no_wrap=True)
    table.add_column("trips", max_width=32)
    table.add_column("kernel", overflow="fold")
    for line in layer.kernels[:SHOWN_KERNELS]:
        _add_row(table, line, safe(line.kernel))
    rest = layer.kernels[SHOWN_KERNELS:]
    if rest:
        folded = InternalLine(
            len(rest), sum((line.counts for line in rest), Counts()), sum(line.own_ns for line in rest)
        )
        _add_row(table, folded, count(len(rest), "more kernel"))
    if layer.internal:
        kernels = count(layer.internal.kernels, "internal function")
        _add_row(table, layer.internal, f"{kernels} of {safe(layer.runtime)}")
    console.print(Padding(table, (0, 0, 0, 2)))


def _add_row(table: Table, line: KernelLine | InternalLine, kernel: str) -> None:
    table.add_row(
        duration(line.own_ns), share(line.counts.loaded_share), counts_text(line.counts), Text(kernel)
    )


def _print_serving(summary: Summary, console: Console) -> None:
    if summary.serving:
        trips = sum(kernel.trips for kernel in summary.serving)
        console.print(Text(f"\nCompiled while serving ({trips})", style=f"bold {STYLES['failed']}"))
        console.print(Padding(late_table(summary.serving), (0, 0, 0, 2)))


def late_table(kernels: Sequence[LateKernel]) -> Table:
    """Return what was not ready, the longest first."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("own time", justify="right", no_wrap=True)
    table.add_column("trips", max_width=32)
    table.add_column("kernel", overflow="fold")
    shown = [kernel for kernel in kernels if not kernel.internal][:SHOWN_KERNELS]
    for kernel in shown:
        table.add_row(duration(kernel.own_ns), counts_text(_late_counts(kernel)), Text(safe(kernel.kernel)))
    rest = [kernel for kernel in kernels if kernel not in shown]
    if rest:
        own_ns = sum(kernel.own_ns for kernel in rest)
        counts = sum(map(_late_counts, rest), Counts())
        table.add_row(duration(own_ns), counts_text(counts), count(len(rest), "more kernel"))
    return table


def _late_counts(kernel: LateKernel) -> Counts:
    return Counts(compiled=kernel.compiled, failed=kernel.failed, unfinished=kernel.unfinished)


def _print_explained(summary: Summary, console: Console) -> None:
    for is_loaded, title in ((False, "Compiled again, and why"), (True, "Loaded, and not the same")):
        entries = [each for each in summary.explained if (each.record.outcome == "loaded") is is_loaded]
        if entries:
            console.print(Text(f"\n{title}", style="bold"))
        for each in entries:
            print_entry(console, safe(each.kernel.kernel), _explained(each))


def _explained(each: Explained) -> str:
    return f"{count(each.trips, 'trip')}: {sentence(each.why)}"


def _print_failed(summary: Summary, console: Console) -> None:
    _print_title(console, "Failed", summary.counts.failed, len(summary.failed))
    for trip in summary.failed:
        message = safe(trip.message or trip.error_type)
        print_entry(console, safe(trip.kernel), f"{message} ({_pid(trip.pid)})")


def _print_unfinished(summary: Summary, console: Console) -> None:
    _print_title(console, "Unfinished", summary.counts.unfinished, len(summary.unfinished))
    for trip in summary.unfinished:
        lives = {
            True: "it still runs",
            False: "the process is gone",
            None: "whether the process lives cannot be seen from here",
        }[trip.alive]
        what = f"started {duration(trip.age_ns)} ago ({_pid(trip.pid)}): {lives}"
        print_entry(console, safe(trip.kernel), what)


def _print_title(console: Console, title: str, number: int, shown: int) -> None:
    if number:
        which = f"{number}" if number == shown else f"{number}, the newest {shown}"
        console.print(Text(f"\n{title} ({which})", style=f"bold {STYLES[title.lower()]}"))


def _pid(pid: int | None) -> str:
    return "process unknown" if pid is None else f"pid {pid}"
