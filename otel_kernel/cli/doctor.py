"""`otel-kernel doctor`."""

from __future__ import annotations

import json
import platform
import sys

import click

from otel_kernel import __version__
from otel_kernel.boot import RUNTIMES
from otel_kernel.cli.errors import NEEDS_ATTENTION
from otel_kernel.cli.reading import takes_json, text_output
from otel_kernel.doctor.examination import examine
from otel_kernel.doctor.findings import State


@click.command()
@click.option(
    "--runtime",
    "names",
    type=click.Choice(sorted(RUNTIMES)),
    multiple=True,
    help="Look at this runtime only; may be given several times.",
)
@click.option("--otlp", metavar="URL", help="Look at this OTLP endpoint instead of those in the environment.")
@takes_json
def doctor(names: tuple[str, ...], otlp: str | None, as_json: bool) -> int:
    """Look at this installation: what would be recorded, what would not, and what to do about it.

    Each runtime that is installed is imported in a process of its own. An OTLP endpoint gets an export without
    spans. Nothing is changed.
    """
    findings = examine(names or sorted(RUNTIMES), otlp)
    about = {"version": __version__, "python": platform.python_version(), "executable": sys.executable}
    if as_json:
        found = list(findings)
        click.echo(json.dumps({**about, "findings": [each.to_json() for each in found]}))
    else:
        from otel_kernel.doctor.render import print_findings

        click.echo(f"otel-kernel {about['version']}, Python {about['python']} ({about['executable']})")
        found = print_findings(findings, text_output())
    needs_attention = any(each.state is State.ATTENTION for each in found)
    return NEEDS_ATTENTION if needs_attention else 0
