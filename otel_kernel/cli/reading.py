"""What the commands that read an INPUT share."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from otel_kernel.cli.errors import FAILED, say
from otel_kernel.inputs import Input, InputError, Problem
from otel_kernel.options import VARIABLE_PREFIX
from otel_kernel.recording.file import default_path
from otel_kernel.report.words import count, safe
from otel_kernel.texts import TextFiles

_SAID: Final = 20
"""Problems that are said one by one."""

_F = TypeVar("_F", bound=Callable[..., Any])


def takes_input(command: _F) -> _F:
    """Add the argument INPUT, as `spec`."""
    return click.argument("spec", metavar="[INPUT]", required=False, callback=_or_default)(command)


def takes_json(command: _F) -> _F:
    """Add the option `--json`, as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def takes_run(command: _F) -> _F:
    """Add the option `--run`, as `run`."""
    return click.option(
        "--run",
        metavar="ID|all",
        help="Only the trips of this run, or of all. By default the latest run of a recording, and all runs of "
        "any other INPUT.",
    )(command)


def takes_text_files(command: _F) -> _F:
    """Add the option `--text-files`, as `texts`."""
    return click.option(
        "--text-files",
        "texts",
        metavar="FOLDER",
        type=click.Path(path_type=Path),
        envvar=VARIABLE_PREFIX + "TEXT_FILES",
        callback=_text_files,
        help="Where texts are that were too long for their spans.",
    )(command)


def _text_files(_ctx: click.Context, _parameter: click.Parameter, folder: Path | None) -> TextFiles | None:
    return None if folder is None else TextFiles(folder)


def _or_default(_ctx: click.Context, _parameter: click.Parameter, spec: str | None) -> str:
    return default_input() if spec is None else spec


def default_input() -> str:
    """Return the recording of this host, which is there.

    Raises:
        InputError: it is not.
    """
    path: Path = default_path()
    if not path.exists():
        raise InputError(
            f"there is no recording {path} yet: make it with `otel-kernel run -- PROGRAM`, or name an INPUT"
        )
    return str(path)


def text_output() -> Any:
    """Return standard output, set to write any text whatever its encoding."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # a TextIOWrapper here
    return sys.stdout


def left_out(*inputs: Input) -> dict[str, object]:
    """Return what of the INPUTs is no trip, as members of a JSON object."""
    numbers: dict[str, object] = {
        name: sum(getattr(each, name) for each in inputs)
        for name in ("problems", "duplicates", "other_spans")
    }
    return {**numbers, "other_records": dict(sorted(_other_records(*inputs).items()))}


def _other_records(*inputs: Input) -> Counter[str]:
    return sum((each.other_records for each in inputs), Counter[str]())


def print_left_out(*inputs: Input) -> None:
    """Print what of the INPUTs is no trip, but for problems, which are said as they come."""
    spans = sum(each.other_spans for each in inputs)
    duplicates = sum(each.duplicates for each in inputs)
    left = [
        f"{count(number, 'record')} of kind {safe(kind)}"
        for kind, number in sorted(_other_records(*inputs).items())
    ]
    if spans or duplicates:
        left += [
            count(spans, "span that is no trip", "spans that are no trips"),
            count(duplicates, "duplicate"),
        ]
    if left:
        click.echo(f"\nLeft out: {', '.join(left)}.")


class Problems:
    """Says the problems of an INPUT, and in the end what they mean for the exit code."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, problem: Problem) -> None:
        """Say a problem; of many only the first ones."""
        self._number += 1
        if self._number <= _SAID:
            say(str(problem))

    def exit_code(self) -> int:
        """Return the exit code after all of the INPUT has been read."""
        if self._number > _SAID:
            say(f"and {self._number - _SAID} problems more")
        return FAILED if self._number else 0
