"""A comparison of ranks for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from otel_kernel.report.console import STYLES, console_on, counts_text, print_entry
from otel_kernel.report.ranks import Duplicate, HoldUp, Ranks
from otel_kernel.report.words import count, duration, safe


def print_ranks(ranks: Ranks, file: IO[str]) -> None:
    """Print how the ranks compare."""
    with console_on(file) as console:
        console.print(_head(ranks))
        if ranks.ranks:
            _print_table(ranks, console)
            console.print(_verdict(ranks))
            _print_hold_ups(ranks, console)
            _print_duplicates(ranks, console)
            _print_unfinished(ranks, console)
        if ranks.unranked.trips:
            without = count(ranks.unranked_processes, "process", "processes")
            trips = count(ranks.unranked.trips, "trip")
            console.print(f"\nNot compared: {trips} of {without} without a rank.")


def _head(ranks: Ranks) -> Text:
    which = "All runs" if ranks.run is None else f"Run {ranks.run}"
    if not ranks.ranks:
        return Text(f"{which}: no trip tells a rank.")
    head = Text.assemble((which, "bold"))
    head.append(f", {count(len(ranks.ranks), 'rank')}")
    world = max((rank.world_size or 0 for rank in ranks.ranks), default=0)
    if world > len(ranks.ranks):
        head.append(f" of {world}, the others told of no trip")
    return head


def _print_table(ranks: Ranks, console: Console) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("rank", "spent", "waited", "held up"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("trips", overflow="fold")
    for rank in ranks.ranks:
        times = (rank.spent_ns, rank.waited_ns, rank.held_up_ns)
        table.add_row(str(rank.rank), *map(duration, times), counts_text(rank.counts))
    console.print(Padding(table, (0, 0, 0, 2)))


def _verdict(ranks: Ranks) -> Text:
    slowest = ranks.slowest
    if slowest is None:
        return Text("\nNo rank waited for another.")
    return Text(f"\nRank {slowest.rank} held the others up for {duration(slowest.held_up_ns)}.", style="bold")


def _print_hold_ups(ranks: Ranks, console: Console) -> None:
    if ranks.hold_ups:
        console.print(Text("\nWaited for", style="bold"))
    for each in ranks.hold_ups:
        print_entry(console, _name(each), _hold_up(each))


def _hold_up(each: HoldUp) -> str:
    waited = "waits" if len(each.waiting) == 1 else "wait"
    waiting = f"{_ranks(each.waiting)} {waited} {duration(each.held_up_ns)}"
    return f"{waiting} for rank {each.rank}: {each.outcome}"


def _print_duplicates(ranks: Ranks, console: Console) -> None:
    number = ranks.duplicate_kernels
    if number:
        shown = len(ranks.duplicates)
        which = f"{number} of {count(ranks.shared_kernels, 'shared kernel')}"
        which += "" if shown == number else f", the longest {shown}"
        console.print(Text(f"\nCompiled on several ranks ({which})", style="bold"))
    for each in ranks.duplicates:
        print_entry(console, _name(each), _duplicate(each))


def _duplicate(each: Duplicate) -> str:
    when = "at the same time" if each.overlapping else "one after the other"
    keys = {True: "under one key", False: "under keys of their own", None: "without a key"}[each.same_key]
    parts = [f"{duration(each.duplicate_ns)} of duplicate work on {_ranks(each.compiled)} {when}, {keys}"]
    if each.loaded:
        parts.append(f"not compiled on {_ranks(each.loaded)}")
    return "; ".join(parts)


def _print_unfinished(ranks: Ranks, console: Console) -> None:
    if ranks.unfinished:
        console.print(Text("\nUnfinished", style=f"bold {STYLES['unfinished']}"))
    for each in ranks.unfinished:
        lives = {True: "it still runs", False: "the process is gone", None: "nothing tells whether it runs"}[
            each.alive
        ]
        print_entry(
            console, safe(each.kernel), f"rank {each.rank}, started {duration(each.age_ns)} ago: {lives}"
        )


def _name(each: Duplicate | HoldUp) -> str:
    return safe(each.kernel if each.specialization is None else f"{each.kernel} {each.specialization}")


def _ranks(numbers: Sequence[int]) -> str:
    """Return `rank 3`, or `ranks 0-2, 5` of numbers in order."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    parts = [str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}" for group in groups]
    return f"{'rank' if len(numbers) == 1 else 'ranks'} {', '.join(parts)}"
