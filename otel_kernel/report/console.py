"""Where reports for people are printed: with colours on a terminal, and as plain text of 80 columns elsewhere."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, Final

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from otel_kernel.report.summary import COUNTED, Counts

PLAIN_WIDTH: Final = 80
"""Columns where there is no terminal."""

STYLES: Final = {"failed": "red", "unfinished": "yellow"}
"""Of what is to be looked at."""


@contextmanager
def console_on(file: IO[str]) -> Generator[Console]:
    """Give a console; what is printed on it goes to `file`."""
    terminal = file.isatty()
    console = Console(
        file=file,
        width=None if terminal else PLAIN_WIDTH,
        force_terminal=None if terminal else False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    if terminal:
        yield console
        return
    with console.capture() as captured:
        yield console
    # Tables fill their lines up with blanks.
    file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def counts_text(counts: Counts) -> Text:
    """Return `2 compiled, 1 failed`."""
    parts = [
        Text(f"{number} {name}", style=STYLES.get(name, ""))
        for name in COUNTED
        if (number := getattr(counts, name))
    ]
    return Text(", ").join(parts)


def print_entry(console: Console, name: str, what: str) -> None:
    """Print a name, and below it what there is to say of it."""
    console.print(Padding(Text(name), (0, 0, 0, 2)))
    console.print(Padding(Text(what), (0, 0, 0, 4)))
