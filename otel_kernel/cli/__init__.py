"""The command `otel-kernel`. Only this package imports click, and rich is imported to print."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Final

import click

from otel_kernel import __version__
from otel_kernel.cli.errors import said

_COMMANDS: Final = {
    "check": "otel_kernel.cli.check:check",
    "diff": "otel_kernel.cli.diff:diff",
    "doctor": "otel_kernel.cli.doctor:doctor",
    "explain": "otel_kernel.cli.explain:explain",
    "export": "otel_kernel.cli.export:export",
    "import": "otel_kernel.cli.import_:import_trips",
    "list": "otel_kernel.cli.list:list_trips",
    "prune": "otel_kernel.cli.prune:prune",
    "receive": "otel_kernel.cli.receive:receive",
    "replay": "otel_kernel.cli.replay:replay",
    "report": "otel_kernel.cli.report:report",
    "run": "otel_kernel.cli.run:run",
    "runs": "otel_kernel.cli.runs:runs",
    "show": "otel_kernel.cli.show:show",
    "warmup-list": "otel_kernel.cli.warmup_list:warmup",
}
"""Where each command is; it is imported when it is asked for, so that `run` starts fast."""


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except Exception as error:
            sys.exit(said(error))
        return result


@click.group(cls=_LazyGroup, invoke_without_command=True)
@click.version_option(__version__, prog_name="otel-kernel", message="%(prog)s %(version)s")
@click.pass_context
def otel_kernel(ctx: click.Context) -> None:
    """Record every kernel compilation of a program, and read the recordings.

    Exit code: 0; 2 if nothing could be done, or if a part of an INPUT could not be read, each with a line on
    standard error; `run` ends as its program does.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    """Run the command line and end the process with its exit code."""
    try:
        code = otel_kernel.main(prog_name="otel-kernel", standalone_mode=False)
    except Exception as error:
        code = said(error)
    sys.exit(code)
