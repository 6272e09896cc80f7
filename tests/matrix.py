"""The versions that the tests are run on, and docs/versions.md, which shows how they went.

noxfile.py makes a session of every cell of the table; `make matrix` runs all and then this, which writes the
page from what the sessions have left in `build/matrix` and keeps the cells that were not run this time.

    python tests/matrix.py [--check | --changed-since COMMIT]

With `--check` nothing is written, and the exit code says whether a cell that was run has failures. With
`--changed-since` the sessions are printed in which CI runs the oldest versions of what has changed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "build" / "matrix"
"""One folder for every session that was run: its installed versions, and its tests as JUnit XML."""

KEPT: Final = ROOT / "tests" / "matrix.json"
"""The results on the page, as data."""

PAGE: Final = ROOT / "docs" / "versions.md"


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a runtime is tested on."""

    requirements: tuple[str, ...]
    """Its versions: the oldest, those in which much has changed, and the newest that there is."""
    beside: tuple[str, ...] = ()
    """What else its tests need."""
    packages: tuple[str, ...] = ()
    """What else of it the page names."""


@dataclass(frozen=True, slots=True)
class PackageSet:
    """Packages of OpenTelemetry that fit together, and a wrapt."""

    constraints: str
    wrapt: str


RUNTIMES: Final[Mapping[str, Runtime]] = {
    "numba": Runtime(("numba==0.61.0", "numba"), ("ipython",), ("llvmlite",)),
    "triton": Runtime(("triton==3.4.0", "triton==3.5.1", "triton")),
    # 0.6 exports and lowers Pallas with absl, without asking for it.
    "jax": Runtime(("jax==0.6.0", "jax"), ("absl-py", "filelock", "flatbuffers"), ("jaxlib",)),
}

SETS: Final[Mapping[str, PackageSet]] = {
    # The oldest set takes no newer wrapt.
    "OpenTelemetry 1.35.0, wrapt 1": PackageSet("tests/constraints/otel-1.35.0.txt", "wrapt<2"),
    "OpenTelemetry 1.45.1, wrapt 1": PackageSet("tests/constraints/otel-1.45.1.txt", "wrapt<2"),
    "OpenTelemetry 1.45.1, wrapt 2": PackageSet("tests/constraints/otel-1.45.1.txt", "wrapt>=2"),
    "OpenTelemetry 1.45.2, wrapt 2": PackageSet("tests/constraints/otel-1.45.2.txt", "wrapt>=2"),
}

TOOLS: Final = ("hypothesis", "opentelemetry-distro", "opentelemetry-sdk", "pytest", "pytest-timeout")
"""What the tests of every runtime need."""

SHOWN: Final = ("opentelemetry-sdk", "opentelemetry-instrumentation", "wrapt")
"""What the page names of every session beside the runtime."""

_HEAD: Final = """\
# Versions

What otel-kernel was tested with. Each cell is a session of its own: one version of a runtime beside one set of
OpenTelemetry packages, with the tests of that runtime and its part of the conformance suite, which every runtime
passes alike ([support](support.md)). `make matrix` runs all sessions and writes this page from their results;
`.venv/bin/nox --list` names them one by one.

The rows of a runtime are its oldest supported version, those in which much has changed for us, and the newest
that there was. "not run" means just that.

"""


@dataclass(frozen=True, slots=True, order=True)
class Result:
    """How one session went."""

    date: str
    """Day on which it was run, in UTC."""
    python: str
    version: str
    """Of the runtime."""
    installed: dict[str, str]
    """Versions of what else the page names."""
    passed: int
    skipped: int
    failed: int

    def to_cell(self) -> str:
        """Return what stands in the table."""
        failed = f", **{self.failed} failed**" if self.failed else ""
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed{skipped}{failed}"


def cell_name(requirement: str, packages: str) -> str:
    """Return how a session is called, and its folder of results."""
    version = requirement.replace("==", "-") if "==" in requirement else f"{requirement}-newest"
    return f"{version}-{re.sub('[^a-z0-9.]+', '-', packages.lower())}"


def read_result(folder: Path, runtime: str) -> Result | None:
    """Return how the session of a folder went, or None if it did not come to an end."""
    suites = [folder / f"{name}.xml" for name in ("runtime", "conformance")]
    if not all(path.exists() for path in suites):
        return None
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for path in suites:
        for suite in ET.parse(path).iter("testsuite"):
            for name in counts:
                counts[name] += int(suite.get(name, 0))
    lines = (folder / "versions.txt").read_text().splitlines()
    versions = dict(line.split("==") for line in lines if "==" in line)
    failed = counts["failures"] + counts["errors"]
    ended = datetime.fromtimestamp(suites[-1].stat().st_mtime, timezone.utc)
    return Result(
        date=f"{ended:%Y-%m-%d}",
        python=(folder / "python.txt").read_text().strip(),
        version=versions[runtime],
        installed={name: versions[name] for name in (*RUNTIMES[runtime].packages, *SHOWN)},
        passed=counts["tests"] - failed - counts["skipped"],
        skipped=counts["skipped"],
        failed=failed,
    )


def read_results() -> dict[str, Result]:
    """Return the results by cell: those that the page has, and in their place those that are new."""
    kept: dict[str, dict[str, Any]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    results = {name: Result(**values) for name, values in kept.items()}
    found: dict[str, Result] = {}
    for runtime, of in RUNTIMES.items():
        for requirement in of.requirements:
            for packages in SETS:
                name = cell_name(requirement, packages)
                result = read_result(RESULTS / name, runtime) or results.get(name)
                if result is not None:
                    found[name] = result
    return found


def to_page(results: Mapping[str, Result]) -> str:
    """Return the page."""
    text = _HEAD
    text += f"| | {' | '.join(SETS)} |\n| --- {'| --- ' * len(SETS)}|\n"
    for of in RUNTIMES.values():
        for requirement in of.requirements:
            cells = [results.get(cell_name(requirement, packages)) for packages in SETS]
            version = next((cell.version for cell in cells if cell), "")
            name = requirement if "==" in requirement or not version else f"{requirement}=={version}"
            newest = "" if "==" in requirement else " (newest)"
            shown = " | ".join(cell.to_cell() if cell else "not run" for cell in cells)
            text += f"| {name.replace('==', ' ')}{newest} | {shown} |\n"
    text += "\n## What was installed\n\n"
    for name, result in results.items():
        versions = ", ".join(f"{package} {version}" for package, version in result.installed.items())
        text += f"- `{name}`, {result.date}: Python {result.python}, version {result.version}; {versions}\n"
    return text


def oldest_sessions(changed: Iterable[str]) -> list[str]:
    """Return the sessions of the oldest versions of what has changed; a change of the core changes Numba's.

    Args:
        changed: paths of files in the repository.
    """
    paths = list(changed)
    folders: dict[str, tuple[str, ...]] = {
        runtime: (f"instrumentors/{runtime}/", f"tests/{runtime}/") for runtime in RUNTIMES
    }
    folders["numba"] += ("otel_kernel/", "pyproject.toml")
    oldest = next(iter(SETS))
    return [
        f"matrix({cell_name(of.requirements[0], oldest)})"
        for runtime, of in RUNTIMES.items()
        if any(path.startswith(folders[runtime]) for path in paths)
    ]


def _changed_since(commit: str) -> list[str]:
    done = subprocess.run(
        ["git", "diff", "--name-only", commit], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def main() -> int:
    """Write the page, check the results or print sessions, and return the exit code."""
    if sys.argv[1:2] == ["--changed-since"]:
        for session in oldest_sessions(_changed_since(sys.argv[2])):
            print(session)
        return 0
    results = read_results()
    failed = [name for name, result in results.items() if result.failed]
    if "--check" not in sys.argv[1:]:
        kept = {name: asdict(result) for name, result in results.items()}
        KEPT.write_text(json.dumps(kept, indent=2) + "\n")
        PAGE.write_text(to_page(results))
    for name in failed:
        print(f"{name}: {results[name].failed} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
