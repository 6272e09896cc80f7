"""`otel-kernel run`: starts a program, records the trips of all its processes, prints a summary."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import click

from otel_kernel import boot
from otel_kernel.cli import program
from otel_kernel.cli.errors import say
from otel_kernel.options import VARIABLE_PREFIX
from otel_kernel.records import RecordLevel
from otel_kernel.session import RUN_VARIABLE

LEVEL_VARIABLE = VARIABLE_PREFIX + "LEVEL"
RECORDING_VARIABLE = VARIABLE_PREFIX + "RECORDING"
OTLP_VARIABLE = VARIABLE_PREFIX + "OTLP"

_SITECUSTOMIZE = Path(boot.__file__).parent / "sitecustomize"


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--level",
    type=click.Choice([level.value for level in RecordLevel]),
    default=RecordLevel.BASIC.value,
    envvar=LEVEL_VARIABLE,
    show_default=True,
    help="How much is recorded of each kernel: nothing, all but its texts, all.",
)
@click.option(
    "--recording",
    type=click.Path(path_type=Path),
    envvar=RECORDING_VARIABLE,
    help="File to record to; by default one for all runs on this host.",
)
@click.option(
    "--otlp",
    metavar="URL",
    envvar=OTLP_VARIABLE,
    help="Also send every trip there: http://127.0.0.1:4318 or grpc://127.0.0.1:4317.",
)
@click.argument("command", metavar="PROGRAM [ARGS]...", nargs=-1, type=click.UNPROCESSED)
def run(level: str, recording: Path | None, otlp: str | None, command: tuple[str, ...]) -> None:
    """Start PROGRAM, record every trip of its processes and print a summary when it ends.

    Signals, output and exit code are the program's own. Put -- before PROGRAM.
    """
    if not command:
        raise click.UsageError("no program: otel-kernel run -- PROGRAM [ARGS]...")
    if shutil.which(command[0]) is None:
        raise click.UsageError(f"{command[0]} is not a program that can be executed: check its path and mode")
    if otlp:
        _check_otlp(otlp)
    if level == RecordLevel.OFF:
        status = _start(command, _environment_of_none())
    else:
        recording = _ready(recording)
        run_id = secrets.token_hex(16)
        with tempfile.TemporaryDirectory(prefix="otel-kernel-", ignore_cleanup_errors=True) as words:
            changes = {
                boot.BOOT_VARIABLE: "1",
                boot.BOOTED_VARIABLE: words,
                RUN_VARIABLE: run_id,
                LEVEL_VARIABLE: level,
                RECORDING_VARIABLE: str(recording),
                OTLP_VARIABLE: otlp or "",
                "PYTHONPATH": _path_with_ours(),
            }
            status = _start(command, {**os.environ, **changes})
            _report(recording, run_id, Path(words))
    sys.exit(program.end_like(status))


def _start(command: tuple[str, ...], environment: Mapping[str, str]) -> int:
    try:
        return program.run(command, environment)
    except OSError as error:
        raise click.UsageError(f"{command[0]} cannot be started: {error.strerror}") from None


def _environment_of_none() -> dict[str, str]:
    """Return an environment in which nothing is recorded, also not for a run that we are part of."""
    left_out = (boot.BOOT_VARIABLE, boot.BOOTED_VARIABLE, RUN_VARIABLE, RECORDING_VARIABLE, OTLP_VARIABLE)
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, LEVEL_VARIABLE: RecordLevel.OFF.value}


def _path_with_ours() -> str:
    ours = str(_SITECUSTOMIZE)
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path != ours]
    # An empty part would mean the current folder: kept where it was, never added.
    return os.pathsep.join([ours, *others]) if any(others) else ours


def _check_otlp(url: str) -> None:
    from otel_kernel.otlp import check_endpoint

    try:
        protocol, _ = check_endpoint(url)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    exporter = f"opentelemetry.exporter.otlp.proto.{'grpc' if protocol == 'grpc' else 'http'}.trace_exporter"
    for module in ("opentelemetry.sdk.trace", exporter):
        if not _is_installed(module):
            raise click.UsageError(f'--otlp needs {module}: pip install "otel-kernel[otlp]"')


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a package that should hold it
        return False


def _ready(recording: Path | None) -> Path:
    """Return the absolute path of the recording, which is there and can be written."""
    from otel_kernel.recording.file import create_or_check, default_path

    recording = (recording or default_path()).absolute()
    create_or_check(recording)
    return recording


def _report(recording: Path, run_id: str, words: Path) -> None:
    """Say what the run has come to. The program has ended, and nothing here changes how."""
    from otel_kernel.recording.pruning import prune

    try:
        if sys.stderr is not None:
            _sum_up(recording, run_id, {word.name: word for word in words.iterdir()})
        prune(recording)
    except (Exception, KeyboardInterrupt) as error:
        with contextlib.suppress(OSError):
            say(f"no summary, but all is recorded in {recording}: {str(error) or type(error).__name__}")


def _sum_up(recording: Path, run_id: str, words: Mapping[str, Path]) -> None:
    if any(word.isdigit() for word in words):  # pids
        _print_summary(recording, run_id)
    elif boot.FOREIGN not in words:
        say(
            "nothing was recorded: no Python process of the program started otel-kernel (it ran no Python, or "
            "one without site-packages, as by -S, or in a cleaned environment)"
        )
    if boot.STRIPPED in words:
        say(
            f"{words[boot.STRIPPED].read_text()} was started in a cleaned environment, so its kernels are not "
            f"recorded; hand {VARIABLE_PREFIX}* on to it"
        )


def _print_summary(recording: Path, run_id: str) -> None:
    from otel_kernel.report.opening import opened
    from otel_kernel.report.render import print_summary
    from otel_kernel.report.summary import summarize

    with opened(recording, lambda problem: say(str(problem))) as found:
        summary = summarize(found.connection, run_id)
    print(file=sys.stderr)
    print_summary(summary, sys.stderr)
    print(f"\nRecorded in {recording}", file=sys.stderr)
