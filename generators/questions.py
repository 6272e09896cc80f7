"""The twelve questions that operators ask, and the page that answers each in every way that fits."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from generators.fleet import REQUEST_TRACE

ROOT: Final = Path(__file__).parent.parent
SQL: Final = ROOT / "collector-config" / "clickhouse" / "questions"

INPUT: Final = "fleet.jsonl"
"""The trips of the fleet, in the folder of the page."""

_COLD, _AGAIN, _NEW = "bb42", "09fb", "b556"
"""How the runs of the fleet start."""


@dataclass(frozen=True)
class Question:
    """One question and where its answers are."""

    text: str
    sql: str
    """The file of its SQL."""
    command: tuple[str, ...]
    """Arguments of `otel-kernel`, without the INPUT."""
    read: str
    """How to read the answer."""
    traceql: str = ""
    promql: str = ""
    shown_lines: int = 50
    """Of what the command prints."""


_COMPILED: Final = 'span.compute.kernel.compilation.outcome = "compiled"'

QUESTIONS: Final = (
    Question(
        "Why did this request take 40 s?",
        "01-slow-request",
        ("list", "--trace", REQUEST_TRACE),
        "What compiled for it has its trace. A process that has no context of the request, such as an engine or "
        "another rank, has not: the SQL adds what its service compiled or loaded at the same time.",
        traceql=f'{{ trace:id = "{REQUEST_TRACE}" && span.compute.kernel.role = "trip" }} '
        "| select(span.compute.kernel.name, span.compute.kernel.compilation.outcome)",
    ),
    Question(
        "Which kernels are compiled again at each start?",
        "02-recompiled-at-each-start",
        ("diff",),
        "`diff` lists what was compiled in both of the last two runs, and why it could not be loaded. The SQL looks "
        "at all starts.",
        traceql=f"{{ {_COMPILED} }} | count_over_time() by (span.compute.kernel.name, "
        "span.compute.kernel.session.run)",
    ),
    Question(
        "How much time did the store save?",
        "03-time-saved",
        ("report",),
        "What loading took, beside what the same key took to compile. Where nobody knows that, it counts as unknown, "
        "not as zero.",
        shown_lines=21,
    ),
    Question(
        "Which rank compiled what another one compiled too, or at the same moment?",
        "04-ranks",
        ("report", "--by", "rank", "--run", _COLD),
        "Two ranks that compile one key at the same moment cannot help each other by a store; one that warms up "
        "first can.",
        traceql=f"{{ {_COMPILED} }} | count_over_time() by (span.compute.kernel.name, span.compute.kernel.rank)",
    ),
    Question(
        "Why did the key change?",
        "05-key-changed",
        ("explain", "shop.kernels.score", "--run", _NEW),
        "Another build, or other code, types, options: the parts of the key that differ are named.",
    ),
    Question(
        "Is it safe to declare it ready: does anything still compile while serving?",
        "06-ready",
        ("check", "--no-compile-after", "serving"),
        "It ends with 1 if anything does, for the pipeline that deploys.",
        traceql=f'{{ {_COMPILED} && span.compute.kernel.phase = "serving" }}',
        promql="sum by (job, compute_kernel_layer) (sum_over_time(job:compute_kernel_trips:delta1m"
        '{compute_kernel_phase="serving", compute_kernel_compilation_outcome="compiled"}[59m59s]))',
    ),
    Question(
        "Was the store used at all: is it mounted, is it writable?",
        "07-store-used",
        ("report", "--by", "store"),
        "A store that is there is loaded from; one that can be written takes what was compiled. Why it did not, the "
        "runtime says.",
        traceql="{ span.compute.kernel.store.stored = false } | select(span.compute.kernel.name, "
        "span.compute.kernel.store.location, span.compute.kernel.store.reason)",
        promql="sum by (job, compute_kernel_layer, compute_kernel_store_stored) (sum_over_time("
        'job:compute_kernel_trips:delta1m{compute_kernel_store_stored!=""}[59m59s]))',
    ),
    Question(
        "Did the new image or driver invalidate everything?",
        "08-new-image",
        ("diff",),
        "Build ids tell: all kernels of one runtime under another `key.build_id`, and the share that was loaded. The "
        "same code has the same `identity`, whatever the build.",
        traceql=f"{{ {_COMPILED} }} | count_over_time() by (resource.service.version, span.compute.kernel.build)",
        promql="sum by (job, compute_kernel_layer) (sum_over_time(job:compute_kernel_trips:delta1m"
        '{compute_kernel_compilation_outcome="loaded"}[59m59s])) / sum by (job, compute_kernel_layer) '
        '(sum_over_time(job:compute_kernel_trips:delta1m{compute_kernel_compilation_outcome!=""}[59m59s]))',
    ),
    Question(
        "Which shapes and specializations should the warm-up cover?",
        "09-warm-up",
        ("warmup-list",),
        "What compiled while serving; with `--json` for a script.",
        traceql=f'{{ {_COMPILED} && span.compute.kernel.phase = "serving" }} '
        "| select(span.compute.kernel.name, span.compute.kernel.specialization)",
    ),
    Question(
        "Is the time in our front end, in the compiler, or in loading?",
        "10-stages",
        ("show", "shop.model.Ranker.forward"),
        "The stages of a trip, as its runtime names them; the SQL adds them up by layer.",
        traceql=f"{{ {_COMPILED} && duration > 10s }} | select(span.compute.kernel.name, "
        "span.compute.kernel.stage.lowering, span.compute.kernel.stage.compile_kernels)",
    ),
    Question(
        "Was a stale or foreign artifact loaded?",
        "11-foreign-artifact",
        ("explain", "shop.pricing.vat", "--run", _AGAIN),
        "Loaded under a key that leaves out what differs: the artifact is another build's.",
    ),
    Question(
        "It failed or it hangs: which kernel?",
        "12-failed-or-hangs",
        ("list", "--state", "failed", "--state", "unfinished", "--run", "all"),
        "A trip that never ended is a row of a recording, and elsewhere a start event without a span: switch on "
        "`start_events`. The gauge `oldest_active` tells how long.",
        traceql='{ instrumentation:name =~ "otel_kernel.*" && status = error } | select(span.compute.kernel.name, '
        "span.error.type)",
        promql="sum by (job, error_type) (sum_over_time(job:compute_kernel_trips:delta1m"
        '{error_type!=""}[59m59s]))',
    ),
)

_HEAD: Final = f"""\
# Twelve questions

Each is answered by one command on a recording, by one statement for ClickHouse, and where it fits by TraceQL for
Tempo or PromQL for Prometheus. The answers below are those of a small fleet that is made up,
[`{INPUT}`]({INPUT}): a service with two ranks, started cold, again, and with a new image. All but TraceQL is run
by the tests, and compared with what is known of that fleet; TraceQL has *not been run* on a Tempo.

The SQL reads the view `kernel_trips`: see [ClickHouse](backends/clickhouse.md). The PromQL reads the counts that
[the rules](alerts.md) record.

<!-- Written by `python -m generators`. -->
"""


def page() -> str:
    """Return the page."""
    return "\n".join((_HEAD, *(_section(number, each) for number, each in enumerate(QUESTIONS, 1))))


def _section(number: int, question: Question) -> str:
    parts = [
        f"## {number}. {question.text}",
        question.read,
        _printed(question),
        f"```{{literalinclude}} ../collector-config/clickhouse/questions/{question.sql}.sql\n:language: none\n```",
    ]
    if question.traceql:
        parts.append(f"TraceQL:\n\n```\n{question.traceql}\n```")
    if question.promql:
        parts.append(f"PromQL:\n\n```\n{question.promql}\n```")
    return "\n\n".join(parts) + "\n"


def _printed(question: Question) -> str:
    lines = answer(question.command).splitlines()
    if len(lines) > question.shown_lines:
        lines[question.shown_lines :] = ["..."]
    return "\n".join(("```", f"$ otel-kernel {' '.join(question.command)} {INPUT}", *lines, "```"))


def answer(command: tuple[str, ...], source: Path | str = INPUT) -> str:
    """Return what `otel-kernel` prints of an INPUT, by default of the fleet."""
    done = subprocess.run(
        [sys.executable, "-c", "from otel_kernel.cli import main; main()", *command, str(source)],
        cwd=ROOT / "docs",
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "NO_COLOR": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode not in (0, 1):  # 1 is an answer of `check`
        raise RuntimeError(done.stderr)
    return done.stdout
