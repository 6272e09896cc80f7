"""`otel-kernel list`."""

from __future__ import annotations

import json
import re
from typing import Final

import click

from otel_kernel.cli.reading import (
    Problems,
    takes_input,
    takes_json,
    takes_run,
    takes_text_files,
    text_output,
)
from otel_kernel.inputs import Problem, open_input
from otel_kernel.kinds import Stamped, kind_of, title_of, wall_of
from otel_kernel.records import CompilationRecord, Trip
from otel_kernel.report.scope import ALL
from otel_kernel.report.selection import selected_of_kinds
from otel_kernel.report.words import duration, moment, safe
from otel_kernel.texts import TextFiles

RECORD: Final = "record"
STATES: Final = (RECORD, "failed", "abandoned", "unfinished")
"""How a trip may have ended."""

_TRACE: Final = re.compile(r"[0-9a-f]{32}").fullmatch


@click.command("list")
@takes_input
@takes_run
@takes_json
@takes_text_files
@click.option(
    "--kind",
    metavar="KIND|all",
    default=CompilationRecord.KIND,
    show_default=True,
    help="Records of this kind, as CubeCL names it: `autotune`, `compilation_batch`, `marks`, `memory`.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Also trips that failed, were abandoned or never ended."
)
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES),
    multiple=True,
    help="Only trips that ended like this, in place of the records; may be given several times.",
)
@click.option(
    "--trace",
    metavar="ID",
    help="Only the trips of this trace, such as that of a request, of all runs if --run names none.",
)
def list_trips(
    spec: str,
    run: str | None,
    as_json: bool,
    texts: TextFiles | None,
    kind: str,
    everything: bool,
    states: tuple[str, ...],
    trace: str | None,
) -> int:
    """List the records of INPUT, one a line.

    INPUT is a recording, a CubeCL environment, a file or pattern of files of JSON lines, as OTLP or as `export`
    writes them, or - for such lines on standard input; by default the recording of this host.
    """
    if trace is not None and not _TRACE(trace):
        raise click.BadParameter(
            f"{trace} is no id of a trace: 32 lower-case hex digits", param_hint="--trace"
        )
    if everything and states:
        raise click.UsageError("--all lists every state: leave out --state")
    wanted = STATES if everything else states or (RECORD,)
    problems = Problems()
    found = open_input(spec, texts=texts)
    output = text_output()
    kinds = None if kind == ALL else {kind}
    run = ALL if run is None and trace is not None else run
    for each in selected_of_kinds(found, run, spec, kinds):
        if isinstance(each, Problem):
            problems(each)
        elif isinstance(each, Stamped) or (each.state in wanted and trace in (None, each.trace_id)):
            output.write(json.dumps(each.to_json()) if as_json else _line(each))
            output.write("\n")
    return problems.exit_code()


def _line(record: Trip | Stamped) -> str:
    if isinstance(record, Stamped):
        wall = wall_of(record.record)
        how, time, name = kind_of(record.record), duration(wall) if wall else "", title_of(record.record)
    else:
        time = "" if record.duration_ns is None else duration(record.duration_ns)
        how, name = record.outcome.value if record.outcome else record.state, record.kernel
    where = f"{record.session.id[:8]}:{record.seq:<4}"
    return f"{moment(record.started_ns)}  {safe(how):10}  {time:>12}  {where}  {safe(name)}"
