"""Which runtime passes which case: `support.json` says what cannot be and why, `docs/support.md` shows it.

    python tests/conformance/support.py [--check]

Without `--check` both files are written: the list of cases from the tests, the page from the list.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
LIST = HERE / "support.json"
PAGE = HERE.parents[1] / "docs" / "support.md"
ALL_CASES = "OTEL_KERNEL_ALL_CASES"
"""`1` runs also the cases that take too long to be run for every runtime every time."""

_HEAD = """\
# Cases that every runtime passes

The conformance suite (`tests/conformance`) runs the same cases for every runtime, with its real compiler.
This page is generated from its list by `python tests/conformance/support.py`.
"Not run": each process that imports torch takes many seconds, so the suite runs a part of its cases;
`OTEL_KERNEL_ALL_CASES=1` runs the others too, and not all of them have been seen to pass yet.

"""


def case_name(function: str) -> str:
    """Return how the list calls the case of a test function."""
    return function.removeprefix("test_").replace("_", " ")


@dataclass(frozen=True, slots=True)
class Support:
    """The list of cases, and what a runtime cannot have."""

    cases: list[str]
    cannot: dict[str, dict[str, str]]
    """Reasons by runtime and case; `triton<3.5` says that only these versions of the runtime cannot."""
    only: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The cases that are run, of a runtime whose processes take too long to run them all."""

    def is_run(self, runtime: str, case: str) -> bool:
        """Whether a case is run for a runtime, unless it cannot have it."""
        return case in self.only.get(runtime, self.cases) or os.environ.get(ALL_CASES) == "1"

    def reason(self, runtime: str, case: str) -> str | None:
        """Return why the installed version of a runtime cannot have a case, or None if it can."""
        for requirement, reasons in self.cannot.items():
            if case in reasons and runtime_of(requirement) == runtime and _is_installed(requirement):
                return reasons[case]
        return None

    def to_text(self) -> str:
        """Return the list as it is committed."""
        return json.dumps({"cases": self.cases, "cannot": self.cannot, "only": self.only}, indent=2) + "\n"

    def to_page(self, runtimes: list[str]) -> str:
        """Return the page for these runtimes."""
        lines = [f"| Case | {' | '.join(runtimes)} |\n", "| --- " * (len(runtimes) + 1) + "|\n"]
        for case in self.cases:
            answers = [self._answer(runtime, case) for runtime in runtimes]
            lines.append(f"| {case} | {' | '.join(answers)} |\n")
        return _HEAD + "".join(lines)

    def _answer(self, runtime: str, case: str) -> str:
        reasons = {
            requirement: of[case]
            for requirement, of in self.cannot.items()
            if runtime_of(requirement) == runtime and case in of
        }
        if runtime in reasons:
            return f"no: {reasons[runtime]}"
        if case not in self.only.get(runtime, self.cases):
            return "not run"
        return "; ".join(("yes", *(f"no for {which}: {reason}" for which, reason in reasons.items())))


def runtime_of(requirement: str) -> str:
    """Return the runtime that a key of `cannot` is about."""
    return requirement.partition("<")[0]


def _is_installed(requirement: str) -> bool:
    from packaging.requirements import Requirement

    if "<" not in requirement:
        return True
    wanted = Requirement(requirement)
    return version(wanted.name) in wanted.specifier


def read() -> Support:
    """Return the committed list."""
    data = json.loads(LIST.read_text())
    return Support(data["cases"], data["cannot"], data["only"])


def runtimes() -> list[str]:
    """Return the runtimes that have an adapter."""
    return sorted(path.stem for path in (HERE / "adapters").glob("[!_]*.py"))


def cases_of_the_tests() -> list[str]:
    """Return the cases as the test modules define them, in order."""
    return [case for path in sorted(HERE.glob("test_*.py")) for case in _cases_of(path)]


def _cases_of(path: Path) -> Iterator[str]:
    functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    for function in functions:
        parameters = {argument.arg for argument in function.args.args}
        if function.name.startswith("test_") and "case" in parameters:
            yield case_name(function.name)


def main() -> int:
    """Write both files or check them, and return the exit code."""
    found = Support(cases_of_the_tests(), read().cannot, read().only)
    wanted = {LIST: found.to_text(), PAGE: found.to_page(runtimes())}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path} differs: run `python tests/conformance/support.py` and commit it", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(wanted[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
