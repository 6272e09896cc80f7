"""Checks for people."""

from __future__ import annotations

from typing import IO, Final

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from otel_kernel.report.checks import Check, Checks
from otel_kernel.report.console import STYLES, console_on
from otel_kernel.report.render import late_table
from otel_kernel.report.words import safe, share

_WORDS: Final = {True: "holds", False: "fails", None: "cannot tell"}
_STYLES: Final = {True: "green", False: STYLES["failed"], None: STYLES["unfinished"]}


def print_checks(checks: Checks, file: IO[str]) -> None:
    """Print a line for each check, and below it what it found."""
    with console_on(file) as console:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for check in checks.checks:
            table.add_row(
                Text(_WORDS[check.holds], style=_STYLES[check.holds]), Text(_expected(check), style="bold")
            )
            table.add_row("", safe(check.reason))
        console.print(table)
        for check in checks.checks:
            if check.kernels:
                console.print(Text(f"\nCompiled after {safe(str(check.limit))}", style="bold"))
                console.print(Padding(late_table(check.kernels), (0, 0, 0, 2)))


def _expected(check: Check) -> str:
    limit = check.limit
    if isinstance(limit, str):
        return f"no compile after {safe(limit)}"
    if check.check == "max_compile_seconds":
        return f"at most {limit:g} s of compiling in a process"
    return f"at least {share(limit)} of a layer loaded"
