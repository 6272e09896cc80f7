"""Write the tables of README.md and of all pages in docs from the code that they describe.

A table stands between `<!-- generated:NAME -->` and `<!-- /generated -->`; what is between them is replaced.

    python docs/generate.py [--check] [FILE ...]

`--check` changes nothing, prints what would change and then exits with 1.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import click

ROOT = Path(__file__).parent.parent

if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # a checkout need not be installed for its tables

sys.path.append(str(ROOT / "tests"))

from explain.changes import CHANGES  # noqa: E402 - see above

from otel_kernel import semconv  # noqa: E402
from otel_kernel.boot import RUNTIMES  # noqa: E402
from otel_kernel.cli import otel_kernel as command_line  # noqa: E402
from otel_kernel.cli.errors import EXIT_CODES  # noqa: E402
from otel_kernel.instrumentor import KernelInstrumentor  # noqa: E402
from otel_kernel.recording import schema  # noqa: E402
from otel_kernel.report.components import KINDS, Kind  # noqa: E402
from otel_kernel.report.reasons import PHRASES  # noqa: E402
from otel_kernel.report.why import Reason  # noqa: E402

_BEGIN = re.compile(r"<!-- generated:(?P<name>\S+) -->")
_END = "<!-- /generated -->"


class MarkerError(Exception):
    """A file has no place for a table, or one that is not closed; the message says where."""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _code(text: str) -> str:
    return f"`{text}`"


def _attributes() -> str:
    return _attribute_table((*semconv.ATTRIBUTES.values(), *semconv.FAMILIES.values()))


def _record_attributes() -> str:
    return _attribute_table(semconv.RECORD_ATTRIBUTES.values())


def _attribute_table(attributes: Iterable[semconv.Attribute]) -> str:
    rows: list[Sequence[str]] = []
    for attribute in attributes:
        kind = attribute.type.__name__ + (f", {attribute.unit}" if attribute.unit else "")
        brief = attribute.brief
        if attribute.values:
            brief += f" One of {', '.join(map(_code, attribute.values))}."
        when = f"{attribute.requirement}: {attribute.when}"
        rows.append((_code(attribute.name), kind, when, brief, _code(attribute.example)))
    return _table(("Attribute", "Type", "When", "Meaning", "Example"), rows)


def _metrics() -> str:
    return _table(
        ("Metric", "Instrument", "Unit", "Attributes", "Meaning"),
        (
            (
                _code(metric.name),
                metric.instrument,
                _code(metric.unit),
                ", ".join(map(_code, metric.attributes)) or "none",
                metric.brief,
            )
            for metric in semconv.METRICS.values()
        ),
    )


def _events() -> str:
    return _table(
        ("Event", "When", "Attributes", "Meaning"),
        (
            (_code(event.name), event.when, ", ".join(map(_code, event.attributes)), event.brief)
            for event in semconv.EVENTS.values()
        ),
    )


def _instrumentors() -> Iterator[tuple[type[KernelInstrumentor], str]]:
    """Yield each instrumentor with what its module says of it."""
    for target in dict.fromkeys(RUNTIMES.values()):
        module_name, _, class_name = target.partition(":")
        module = importlib.import_module(module_name)
        yield getattr(module, class_name), inspect.getdoc(module) or ""


_INSTRUMENTORS: Final = {of.runtime: (of, said) for of, said in _instrumentors()}


def _install(instrumentor: type[KernelInstrumentor]) -> str:
    return f'pip install "otel-kernel[{instrumentor.runtime}]"'


def _support() -> str:
    rows: list[Sequence[str]] = []
    for instrumentor, said in _INSTRUMENTORS.values():
        runtime, _, covers = said.partition("\n")[0].rstrip(".").partition(": ")
        rows.append((runtime, covers, _code(instrumentor.requires), _code(_install(instrumentor))))
    return _table(("Runtime", "What is instrumented", "Versions", "Install"), rows)


def _runtime(name: str) -> str:
    instrumentor, said = _INSTRUMENTORS[name]
    rows = (
        ("Versions", _code(instrumentor.requires)),
        ("Install", _code(_install(instrumentor))),
        ("In code", _code(f"from {instrumentor.__module__} import {instrumentor.__name__}")),
        ("Entry point", _code(f"kernel_{name}")),
        ("Scope of its spans", _code(semconv.SCOPE_PREFIX + name)),
    )
    return f"{_table(('', ''), rows)}\n{said}\n"


def _recording() -> str:
    said = (inspect.getdoc(schema) or "").split("\n\n", 2)[2]
    rows = (
        (_code(column), schema.TRIP_COLUMNS[column], semconv.ATTRIBUTES[name].brief)
        for name, column in schema.ATTRIBUTE_COLUMNS.items()
    )
    return f"{said}\n\n{_table(('Column of `trips`', 'SQL type', 'Meaning'), rows)}"


def _command(name: str) -> click.Command:
    command = command_line.get_command(click.Context(command_line), name)
    assert command is not None, name
    return command


_COMMANDS: Final = command_line.list_commands(click.Context(command_line))


def _commands() -> str:
    rows = [(f"[`{name}`](#{name})", _command(name).get_short_help_str(200)) for name in _COMMANDS]
    return _table(("Command", "What it does"), rows)


def _options_of(name: str) -> str:
    usage = [f"otel-kernel {name}"]
    rows: list[Sequence[str]] = []
    for parameter in _command(name).params:
        if isinstance(parameter, click.Option):
            rows.append(_option(parameter))
        else:
            usage.append(parameter.metavar or parameter.name or "")
    return f"```\n{' '.join(usage)}\n```\n\n{_table(('Option', 'Meaning'), rows)}"


def _option(option: click.Option) -> tuple[str, str]:
    names = _code(", ".join(option.opts))
    if isinstance(option.type, click.Choice):
        names += f" {' or '.join(map(_code, option.type.choices))}"
    elif not option.is_flag:
        metavar = option.metavar or option.type.name.split()[0].upper()
        names += f" {metavar.replace('|', ' or ')}"
    meaning = option.help or ""
    if option.show_default:
        meaning += f" By default {_code(str(option.default))}."
    if option.envvar:
        meaning += f" Also as {_code(str(option.envvar))}."
    return names, meaning


def _exit_codes() -> str:
    return _table(
        ("Code", "Command", "Meaning"),
        ((str(each.code), each.commands, each.meaning) for each in EXIT_CODES),
    )


_SHOWN_LINES: Final = 40
"""Of an example."""

_EXAMPLES: Final = {
    "report": ("report", "--run", "2bce", "trips.jsonl"),
    "stores": ("report", "--by", "store", "trips.jsonl"),
    "check": ("check", "--max-compile-seconds", "5", "--run", "9402", "trips.jsonl"),
    "list": ("list", "trips.jsonl"),
    "show": ("show", "shop.pricing.total", "trips.jsonl"),
    "diff": ("diff", "trips.jsonl"),
    "explain": ("explain", "shop.pricing.total", "trips.jsonl"),
    "warmup-list": ("warmup-list", "--phase", "all", "trips.jsonl"),
}


def _example(name: str) -> str:
    """Run a command in this folder and return what it prints."""
    arguments = _EXAMPLES[name]
    done = subprocess.run(
        [sys.executable, "-c", "from otel_kernel.cli import main; main()", *arguments],
        cwd=ROOT / "docs",
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    lines = done.stdout.splitlines()
    if len(lines) > _SHOWN_LINES:
        lines[_SHOWN_LINES:] = ["..."]
    return "\n".join(("```", f"$ otel-kernel {' '.join(arguments)}", *lines, "```", ""))


def _changes() -> str:
    rows: list[Sequence[str]] = []
    for change in CHANGES:
        if change.reason is None:
            said = "it was loaded"
        else:
            said = PHRASES[Reason(change.reason)]
            if change.parts:
                said += f": {', '.join(name.replace('_', ' ') for name in change.parts)}"
        report = ""
        if change.thread:
            repository, _, number = change.thread.partition("#")
            report = f"[{change.thread}](https://github.com/{repository}/issues/{number})"
        rows.append((change.runtime, change.what, said, report))
    return _table(("Runtime", "What changes", "What is said", "Report"), rows)


def _kinds() -> str:
    rows: list[Sequence[str]] = []
    for kind in Kind:
        names = sorted(name for name, of in KINDS.items() if of is kind)
        rows.append((_code(kind.value), ", ".join(map(_code, names)) or "all others"))
    return _table(("Tells of", "Parts"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "attributes": _attributes,
    "record-attributes": _record_attributes,
    "metrics": _metrics,
    "events": _events,
    "support": _support,
    "recording": _recording,
    "commands": _commands,
    "exit-codes": _exit_codes,
    "changes": _changes,
    "kinds": _kinds,
    **{f"runtime-{name}": partial(_runtime, name) for name in _INSTRUMENTORS},
    **{f"options-{name}": partial(_options_of, name) for name in _COMMANDS},
    **{f"example-{name}": partial(_example, name) for name in _EXAMPLES},
}


def fill(text: str, where: str) -> str:
    """Return a file's text with every table in it as the code says it should be.

    Args:
        text: the file's text.
        where: the file's name, for errors.

    Raises:
        MarkerError: a marker names no table or is not closed.
    """
    done: list[str] = []
    lines = iter(enumerate(text.splitlines(keepends=True), 1))
    for number, line in lines:
        done.append(line)
        found = _BEGIN.match(line)
        if not found:
            continue
        name = found["name"]
        if name not in TABLES:
            raise MarkerError(f"{where}:{number}: no table is named {name}; there are {', '.join(TABLES)}")
        for _, rest in lines:
            if rest.startswith(_END):
                done += ["\n", TABLES[name](), "\n", rest]
                break
        else:
            raise MarkerError(f"{where}:{number}: the marker of table {name} has no {_END} below it")
    return "".join(done)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill or check the files, and return the exit code."""
    parser = argparse.ArgumentParser(
        description="Write the tables of README.md and of the pages in docs from the code."
    )
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a table differs")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    named: list[Path] = options.files
    files = named or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    stale: list[Path] = []
    places: set[str] = set()
    for path in files:
        name = str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
        try:
            before = path.read_text(encoding="utf-8")
            after = fill(before, name)
        except (OSError, MarkerError) as error:
            print(
                f"{name}: there is no such file" if isinstance(error, FileNotFoundError) else error,
                file=sys.stderr,
            )
            if named or not isinstance(error, FileNotFoundError):
                return 2
            continue
        places |= {found["name"] for found in map(_BEGIN.match, after.splitlines()) if found}
        if after == before:
            continue
        if options.check:
            stale.append(path)
            difference = difflib.unified_diff(
                before.splitlines(keepends=True), after.splitlines(keepends=True), name, f"{name} (generated)"
            )
            sys.stdout.writelines(difference)
        else:
            path.write_text(after, encoding="utf-8")
    homeless = TABLES.keys() - places
    if homeless and not named:
        print(f"no file has the marker of: {', '.join(sorted(homeless))}", file=sys.stderr)
        return 2
    if stale:
        print("run `python docs/generate.py` and commit what it writes", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
