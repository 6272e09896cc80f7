"""Prints what otel-kernel costs, and writes it to docs/benchmarks.md when asked.

    make bench
    make bench BENCH="one_trip reading"
    make bench BENCH=--write

Each benchmark runs in a process of its own. With `--write` all of them are run, and the table of the page is
replaced; the words around it stay.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

from benchmarks.harness import Line, measure

BENCHMARKS = (
    "launch_path",
    "one_trip",
    "parts",
    "level_off",
    "reading",
    "recording",
    "start_up",
    "torch_steps",
    "in_memory",
    "million",
    "clickhouse",
)
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
START, END = "<!-- what follows is written by `make bench BENCH=--write` -->\n", "<!-- until here -->\n"
PACKAGES = ("opentelemetry-sdk", "wrapt", "numba", "triton", "torch")
HEAD = ("line", "target", "ratio", "spread", "met")


def measured(names: list[str]) -> Iterator[Line]:
    """Yield the lines of these benchmarks, one after the other."""
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for lines in pool.imap(measure, names):
            yield from lines


def row(cells: tuple[str, ...]) -> str:
    """Return a row of the table."""
    return f"| {' | '.join(cells)} |"


def conditions() -> str:
    """Return what the figures hold for."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    processors = os.cpu_count()
    return (
        f"{datetime.now(timezone.utc):%Y-%m-%d}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, {versions}; {processors} processors, "
        f"load {os.getloadavg()[1]:.1f} over the last five minutes."
    )


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(prog="make bench", description="Print what otel-kernel costs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--write", action="store_true", help="run all and write docs/benchmarks.md, too")
    arguments = parser.parse_args()
    names: list[str] = arguments.names or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]}: choose from {', '.join(BENCHMARKS)}")
    if arguments.write and arguments.names:
        parser.error("--write runs all benchmarks: name none")
    table = [row(HEAD), row(("---",) * len(HEAD))]
    print(*table, sep="\n", flush=True)
    for line in measured(names):
        table.append(row(line.to_cells()))
        print(table[-1], flush=True)
    print(f"\n{conditions()}")
    if arguments.write:
        before, _, rest = PAGE.read_text().partition(START)
        after = rest.partition(END)[2]
        written = "\n".join((*table, "", conditions(), ""))
        PAGE.write_text(f"{before}{START}\n{written}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
