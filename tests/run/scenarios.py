"""The ways in which a program may be started, and may start others, with what `otel-kernel run` makes of each.

Commands run in a folder with a copy of `programs`; in a command and in the environment `{python}` is the
interpreter that otel-kernel is installed for, `{bin}` its folder, `{packages}` its folder of packages, `{foreign}` an
interpreter without otel-kernel and `{folder}` the folder.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, field

FOREIGN_VERSIONS = ("3.10", "3.11", "3.12")
"""Interpreters that `{foreign}` stands for, each in a run of its own."""

KERNEL = ("kernel",)
CHILD = ("child_kernel",)


@dataclass(frozen=True)
class Scenario:
    name: str
    command: tuple[str, ...]
    records: tuple[tuple[str, ...], ...]
    """The kernels that are recorded, process by process."""
    exit: int = 0
    """Exit code, or the number of the signal that it died of, negative."""
    unrecorded: tuple[str, ...] = ()
    """Kernels that are compiled and not recorded."""
    line: str = ""
    """What is said about it, in one line."""
    environment: dict[str, str] = field(default_factory=dict[str, str])
    stdin: str = ""
    output: tuple[str, ...] = ()
    """Lines that the program prints besides one for each compile."""
    errors: str = ""
    """Part of what the program itself prints to stderr."""


def _program(way: str, *records: tuple[str, ...], **expected: object) -> Scenario:
    """Return the scenario of the program going a way of its own."""
    return Scenario(way, ("{python}", "kernels.py", way), (KERNEL, *records), **expected)  # type: ignore[arg-type]


STRIPPED_LINE = "was started in a cleaned environment, so its kernels are not recorded"
NOTHING_LINE = "nothing was recorded: no Python process of the program started otel-kernel"
FOREIGN_LINE = "cannot import otel-kernel, so its kernels are not recorded; install it there"

SCENARIOS = (
    # Ways to start the program.
    Scenario("script", ("{python}", "kernels.py"), (KERNEL,)),
    Scenario("module", ("{python}", "-m", "kernels"), (KERNEL,)),
    Scenario("code", ("{python}", "-c", "import kernels; kernels.run()"), (KERNEL,)),
    Scenario("standard input", ("{python}",), (KERNEL,), stdin="import kernels; kernels.run()"),
    Scenario("console script", ("./console-script",), (KERNEL,)),
    Scenario("shell", ("bash", "-c", "{python} kernels.py && exit 4"), (KERNEL,), exit=4),
    Scenario("-E", ("{python}", "-E", "kernels.py"), (KERNEL,)),
    Scenario("-I", ("{python}", "-I", "kernels.py"), (KERNEL,)),
    Scenario("-P", ("{python}", "-P", "kernels.py"), (KERNEL,)),
    Scenario("-s", ("{python}", "-s", "kernels.py"), (KERNEL,)),
    Scenario(
        "-S",
        ("{python}", "-S", "kernels.py"),
        (),
        unrecorded=KERNEL,
        environment={"PYTHONPATH": "{packages}"},
        line=NOTHING_LINE,
    ),
    Scenario(
        "PYTHONPATH already set",
        ("{python}", "-c", "import kernels, only_there; kernels.run('subprocess')"),
        (KERNEL, CHILD),
        environment={"PYTHONPATH": "{folder}/path"},
        output=("imported only_there",),
    ),
    Scenario(
        "sitecustomize of the program",
        ("{python}", "kernels.py", "subprocess"),
        (KERNEL, CHILD),
        environment={"PYTHONPATH": "{folder}/customized"},
        output=("customized", "customized", "customized"),  # otel-kernel is a Python program too
    ),
    Scenario(
        "opentelemetry-instrument",
        ("{bin}/opentelemetry-instrument", "{python}", "kernels.py", "subprocess"),
        (KERNEL, CHILD),
        environment={
            "OTEL_TRACES_EXPORTER": "none",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
        },
    ),
    Scenario(
        "foreign interpreter with a child",
        ("{foreign}", "foreign.py"),
        (),
        output=("ran", "ran"),
        line=FOREIGN_LINE,
    ),
    # Ways to start a child.
    _program("subprocess", CHILD),
    _program("subprocess -E", CHILD),
    _program("subprocess -I", CHILD),
    _program("subprocess in a cleaned environment", unrecorded=CHILD, line=STRIPPED_LINE),
    _program("subprocess with PYTHONPATH replaced", CHILD),
    _program("fork", CHILD),
    _program("spawn", CHILD),
    _program("forkserver", CHILD),
    _program("pool", CHILD),
    _program("os.fork", CHILD),
    _program("exec", CHILD),
    Scenario("spawn under -I", ("{python}", "-I", "kernels.py", "spawn"), (KERNEL, CHILD)),
    Scenario("thread", ("{python}", "kernels.py", "thread"), (("kernel", "child_kernel"),)),
    Scenario("atexit", ("{python}", "kernels.py", "atexit"), (("kernel", "child_kernel"),)),
    # Ways to end.
    _program("os._exit", exit=5),
    _program("exit", exit=3),
    _program("raise", exit=1, errors="ValueError: the program's own error"),
    _program("SIGINT", exit=-signal.SIGINT, errors="KeyboardInterrupt"),
    _program("SIGTERM", exit=-signal.SIGTERM),
    _program("SIGKILL", exit=-signal.SIGKILL),
)
