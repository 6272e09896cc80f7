"""What stores gave and took, for people."""

from __future__ import annotations

from typing import IO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from otel_kernel.report.console import console_on
from otel_kernel.report.stores import Store, Stores
from otel_kernel.report.words import count, safe


def print_stores(stores: Stores, file: IO[str]) -> None:
    """Print what each store gave and took."""
    with console_on(file) as console:
        which = "All runs" if stores.run is None else f"Run {stores.run}"
        if not stores.stores:
            console.print(f"{which}: no records.")
            return
        console.print(Text(which, style="bold"))
        for store in stores.stores:
            _print_store(store, console)


def _print_store(store: Store, console: Console) -> None:
    console.print(Text(f"\n{safe(store.layer)}", style="bold"))
    if not store.is_there:
        without = count(store.processes, "process", "processes")
        console.print(Padding(Text(f"no store, in {without}"), (0, 0, 0, 2)))
        return
    place = " ".join(safe(part) for part in (store.kind, store.location) if part is not None)
    console.print(Padding(Text(f"{place}, {count(store.processes, 'process', 'processes')}"), (0, 0, 0, 2)))
    console.print(Padding(_numbers(store), (0, 0, 0, 2)))
    for each in store.reasons:
        said = "the runtime does not say why" if each.reason is None else safe(each.reason)
        console.print(Padding(Text(f"not taken: {said}; {count(each.trips, 'trip')}"), (0, 0, 0, 4)))


def _numbers(store: Store) -> Text:
    parts = [Text(f"{store.loaded} loaded"), Text(f"{store.stored} stored")]
    if store.not_stored:
        parts.append(Text(f"{store.not_stored} not stored", style="yellow"))
    if store.damaged:
        parts.append(Text(f"{store.damaged} damaged", style="red"))
    return Text(", ").join(parts)
