"""The versions that the tests run on: `make matrix`, or `nox --list` to choose one session.

A session installs one version of a runtime beside one set of OpenTelemetry packages into an environment of its
own, and runs the tests of that runtime and its part of the conformance suite. What was installed and how the
tests went is left in `build/matrix`, from which `tests/matrix.py` writes docs/versions.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nox

sys.path.append(str(Path(__file__).parent / "tests"))

from matrix import RESULTS, RUNTIMES, SETS, TOOLS, cell_name

nox.options.default_venv_backend = "uv"

CELLS = [
    nox.param(runtime, requirement, packages, id=cell_name(requirement, packages))
    for runtime, of in RUNTIMES.items()
    for requirement in of.requirements
    for packages in SETS
]

SUCCESS_OR_FAILURES = (0, 1)
"""How pytest ends: the table tells of failures, and `make matrix` ends with them."""


@nox.session
@nox.parametrize(["runtime", "requirement", "packages"], CELLS)
def matrix(session: nox.Session, runtime: str, requirement: str, packages: str) -> None:
    """Run the tests of a runtime on one of its versions and one set of OpenTelemetry packages."""
    chosen = SETS[packages]
    session.install(
        "--editable",
        ".",
        *TOOLS,
        requirement,
        *RUNTIMES[runtime].beside,
        chosen.wrapt,
        "--constraint",
        chosen.constraints,
    )
    results = RESULTS / cell_name(requirement, packages)
    results.mkdir(parents=True, exist_ok=True)
    for old in results.iterdir():
        old.unlink()
    freeze = session.run("uv", "pip", "freeze", "--exclude-editable", silent=True)
    python = session.run("python", "-c", "import platform; print(platform.python_version())", silent=True)
    (results / "versions.txt").write_text(str(freeze))
    (results / "python.txt").write_text(str(python))
    for name, tests in (
        ("runtime", [f"tests/{runtime}"]),
        ("conformance", ["tests/conformance", "-k", f"{runtime} and not torch"]),  # has Triton in names
    ):
        report = f"--junit-xml={results / name}.xml"
        session.run(
            "python",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            report,
            *tests,
            success_codes=SUCCESS_OR_FAILURES,
        )
