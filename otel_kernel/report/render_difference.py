"""What differs between two runs, for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import IO, Final

from rich.console import Console
from rich.text import Text

from otel_kernel.report.console import console_on, counts_text, print_entry
from otel_kernel.report.difference import Change, Difference, Entry
from otel_kernel.report.instances import Cost, Side
from otel_kernel.report.reasons import PHRASES, group, sentence
from otel_kernel.report.why import Reason
from otel_kernel.report.words import count, duration, moment, safe, share

SHOWN: Final = 20
"""Entries of each kind that are shown, those whose own time differs most."""

_TITLES: Final = {
    Change.OUTCOME: "Other outcome",
    Change.SLOWER: "Slower",
    Change.FASTER: "Faster",
    Change.TRIPS: "More or fewer trips",
    Change.NEW: "New",
    Change.GONE: "Gone",
}

_LONGEST: Final = 100
"""Signs of a specialization that are shown."""

_NAMED: Final = 5
"""Kernels that a group names."""


def print_difference(difference: Difference, file: IO[str]) -> None:
    """Print what differs; functions of the runtimes' own libraries are only counted."""
    with console_on(file) as console:
        _print_side(console, "Before", difference.before)
        _print_side(console, "After", difference.after)
        if difference.is_none:
            console.print("\nNothing differs.")
        for change, title in _TITLES.items():
            _print_entries(console, title, [entry for entry in difference.entries if entry.change is change])
        for is_new, title in ((True, "Fails now"), (False, "Fails no more")):
            failures = [failure for failure in difference.failures if failure.is_new is is_new]
            if failures:
                console.print(Text(f"\n{title} ({len(failures)})", style="bold red" if is_new else "bold"))
            for failure in failures[:SHOWN]:
                what = f"{safe(failure.failed.error_type)} ({count(failure.failed.trips, 'trip')})"
                print_entry(console, safe(failure.kernel.kernel), what)
        _print_compiled_again(console, [entry for entry in difference.entries if entry.is_compiled_again])
        threshold = difference.threshold
        console.print(
            f"\nTimes are own times; one differs from {duration(threshold.ns)} and {share(threshold.share)} on."
        )


def _print_side(console: Console, name: str, side: Side) -> None:
    which = "all runs" if side.run is None else f"run {side.run}"
    console.print(Text.assemble((f"{name}: {which}", "bold"), f" of {safe(side.name)}"))
    if side.started_ns is None:
        console.print("  No trips.")
        return
    processes = count(side.processes, "process", "processes")
    console.print(f"  {moment(side.started_ns)}, {processes}, {duration(side.spent_ns)} spent")
    console.print(Text(f"  {count(side.counts.trips, 'trip')}: ").append(counts_text(side.counts)))


def _print_entries(console: Console, title: str, entries: Sequence[Entry]) -> None:
    if not entries:
        return
    console.print(Text(f"\n{title} ({len(entries)})", style="bold"))
    ours = [entry for entry in entries if not entry.internal]
    for entry in ours[:SHOWN]:
        print_entry(console, _name(entry), _what(entry))
    rest = ours[SHOWN:]
    if rest:
        console.print(f"  {len(rest)} more, {_moved(rest)}")
    internal = [entry for entry in entries if entry.internal]
    if internal:
        console.print(f"  {count(len(internal), 'internal function')}, {_moved(internal)}")


def _moved(entries: Sequence[Entry]) -> str:
    return f"{_signed(sum(entry.moved_ns for entry in entries))} in all"


def _signed(ns: int) -> str:
    return f"{'-' if ns < 0 else '+'}{duration(abs(ns))}"


def _name(entry: Entry) -> str:
    layer = "" if entry.kernel.layer == entry.kernel.runtime else f", {entry.kernel.layer}"
    specialization = entry.instance.specialization or ""
    if len(specialization) > _LONGEST:
        specialization = f"{specialization[:_LONGEST]}..."
    return f"{safe(entry.kernel.kernel)} {safe(specialization)}".rstrip() + safe(layer)


def _what(entry: Entry) -> str:
    costs = [_cost(cost) for cost in (entry.before, entry.after) if cost is not None]
    line = " -> ".join(costs)
    if entry.change in (Change.SLOWER, Change.FASTER) and entry.before and entry.after:
        before, after = entry.before.own_ns_per_trip, entry.after.own_ns_per_trip
        line += (
            f" ({_signed(after - before)} a trip{f', {(after - before) / before:+.0%}' if before else ''})"
        )
    return f"{line}\n{sentence(entry.why)}" if entry.why else line


def _cost(cost: Cost) -> str:
    outcomes = ", ".join(
        f"{number} {name}" for name in ("compiled", "loaded", "rekeyed") if (number := getattr(cost, name))
    )
    each = f" ({duration(cost.own_ns_per_trip)} each)" if cost.trips > 1 else ""
    return f"{outcomes} in {duration(cost.own_ns)}{each}"


def _print_compiled_again(console: Console, entries: Sequence[Entry]) -> None:
    """Print why, with the kernels of each reason."""
    if not entries:
        return
    console.print(Text(f"\nCompiled in both ({len(entries)})", style="bold"))
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[group(entry.why) if entry.why else PHRASES[Reason.UNKNOWN]].append(entry)
    for reason, members in sorted(groups.items(), key=lambda item: -_after_ns(item[1])):
        names = list(dict.fromkeys(safe(entry.kernel.kernel) for entry in members if not entry.internal))
        internal = sum(entry.internal for entry in members)
        named = names[:_NAMED]
        if len(names) > _NAMED:
            named.append(count(len(names) - _NAMED, "other kernel"))
        if internal:
            named.append(count(internal, "internal function"))
        print_entry(console, f"{reason}; {duration(_after_ns(members))}", ", ".join(named))


def _after_ns(entries: Sequence[Entry]) -> int:
    return sum(entry.after.own_ns for entry in entries if entry.after)
