"""Every way in which a program may start is recorded exactly once, or answered with one clear line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from run.launching import BIN, PROGRAMS, PYTHON, our_lines, recorded, run
from run.scenarios import FOREIGN_VERSIONS, SCENARIOS, Scenario

_CONSOLE_SCRIPT = """\
#!{python}
import sys
from kernels import run
sys.exit(run())
"""


def _cases() -> list[object]:
    cases: list[object] = []
    for scenario in SCENARIOS:
        if "{foreign}" in scenario.command:
            cases += [
                pytest.param(scenario, version, id=f"{scenario.name} {version}")
                for version in FOREIGN_VERSIONS
            ]
        else:
            cases.append(pytest.param(scenario, None, id=scenario.name))
    return cases


@pytest.mark.parametrize(("scenario", "foreign_version"), _cases())
def test_scenario(scenario: Scenario, foreign_version: str | None, tmp_path: Path) -> None:
    if "-P" in scenario.command and sys.version_info < (3, 11):
        pytest.skip("-P came with Python 3.11")
    places = {
        "python": PYTHON,
        "bin": str(BIN),
        "packages": str(_packages()),
        "foreign": _foreign(foreign_version, tmp_path) if foreign_version else "",
        "folder": str(tmp_path),
    }
    _furnish(tmp_path)

    result = run(
        [part.format(**places) for part in scenario.command],
        tmp_path,
        changes={name: value.format(**places) for name, value in scenario.environment.items()},
        stdin=scenario.stdin,
    )

    assert scenario.exit == result.returncode, result.stderr
    assert sorted(scenario.records) == recorded(tmp_path), result.stderr
    compiled = [kernel for kernels in scenario.records for kernel in kernels] + list(scenario.unrecorded)
    output = [f"compiled {kernel}" for kernel in compiled] + list(scenario.output)
    assert sorted(output) == sorted(result.stdout.splitlines())
    lines = our_lines(result.stderr)
    assert bool(scenario.line) == len(lines), result.stderr
    assert all(scenario.line in line for line in lines)
    before, _, summary = result.stderr.partition("\nRun ")
    assert scenario.errors in before
    if scenario.records:
        trips = "1 trip" if 1 == len(compiled) - len(scenario.unrecorded) else "2 trips"
        assert f"{trips}: {trips[0]} compiled" in summary.splitlines()
        assert scenario.errors or "" == before, "nothing else is said"


def _furnish(folder: Path) -> None:
    for program in PROGRAMS.glob("*.py"):
        shutil.copy(program, folder)
    script = folder / "console-script"
    script.write_text(_CONSOLE_SCRIPT.format(python=PYTHON))
    script.chmod(0o755)
    (folder / "path").mkdir()
    (folder / "path" / "only_there.py").write_text("print('imported only_there', flush=True)\n")
    (folder / "customized").mkdir()
    (folder / "customized" / "sitecustomize.py").write_text("print('customized', flush=True)\n")


def _packages() -> Path:
    numba = find_spec("numba")

    assert numba is not None
    assert numba.origin is not None
    return Path(numba.origin).parent.parent


def _foreign(version: str, folder: Path) -> str:
    """Return the interpreter of a fresh virtual environment of the given version, which holds nothing."""
    for base in _interpreters(version):
        venv = folder / "foreign"
        made = subprocess.run([base, "-m", "venv", "--without-pip", venv], capture_output=True, check=False)
        if made.returncode == 0:
            return str(venv / "bin" / "python")
    pytest.skip(f"no Python {version} here")


def _interpreters(version: str) -> list[str]:
    """Return what may be an interpreter of `version`: a shim of pyenv may also be one that refuses."""
    found = [shutil.which(f"python{version}")]
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        found.insert(0, str(Path(sys.base_prefix, "bin", f"python{version}")))
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found += [str(path) for path in sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))]
    return [path for path in found if path]
