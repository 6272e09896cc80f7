"""Findings for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Final

from rich.table import Table
from rich.text import Text

from otel_kernel.doctor.findings import Area, Finding, State
from otel_kernel.report.console import console_on
from otel_kernel.report.words import safe

_TITLES: Final = {
    Area.RUNTIME: "Runtimes",
    Area.STORE: "Stores",
    Area.RECORDING: "Recording",
    Area.START: "Start of a process",
    Area.OPENTELEMETRY: "OpenTelemetry",
    Area.ENDPOINT: "OTLP endpoint",
}

_STYLES: Final = {State.WELL: "green", State.ABSENT: "dim", State.NOTE: "yellow", State.ATTENTION: "bold red"}

_WIDTH: Final = max(len(state.value) for state in State)


def print_findings(findings: Iterable[Finding], file: IO[str]) -> list[Finding]:
    """Print each finding as soon as it is there, and return all."""
    found: list[Finding] = []
    for finding in findings:
        with console_on(file) as console:
            if not found or found[-1].area is not finding.area:
                console.print(Text(f"\n{_TITLES[finding.area]}", style="bold"))
            table = Table.grid(padding=(0, 2, 0, 0))
            table.add_column(width=_WIDTH + 2)
            table.add_column(overflow="fold")
            state = Text(f"  {finding.state.value}", style=_STYLES[finding.state])
            table.add_row(state, Text(f"{safe(finding.name)}: {safe(finding.text)}"))
            if finding.advice:
                table.add_row("", Text(f"-> {safe(finding.advice)}"))
            console.print(table)
        file.flush()
        found.append(finding)
    return found
