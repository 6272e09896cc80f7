"""The wheel holds all of the package and nothing else, and works where only the wheel is installed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import zipfile
from configparser import ConfigParser
from contextlib import closing
from pathlib import Path

from otel_kernel.boot import RUNTIMES

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "run" / "programs" / "kernels.py"


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PYTHON"))}
    return {**kept, **changes}


def test_top_level_is_the_package_and_its_two_start_files(wheel: Path) -> None:
    top = {name.partition("/")[0] for name in _names(wheel)}
    ours = {name for name in top if not name.endswith(".dist-info")}

    assert {"otel_kernel", "otel_kernel.pth", "otel_kernel.start"} == ours
    assert 1 == len(top - ours)


def test_wheel_holds_every_module_of_the_tree(wheel: Path) -> None:
    package = {f"otel_kernel/{path}" for path in _modules(ROOT / "otel_kernel")}
    instrumentors = {f"otel_kernel/instrumentors/{path}" for path in _modules(ROOT / "instrumentors")}
    runtimes = {target.partition(":")[0].replace(".", "/") + "/__init__.py" for target in RUNTIMES.values()}

    assert runtimes <= instrumentors
    assert package | instrumentors <= _names(wheel)


def _modules(folder: Path) -> list[Path]:
    """Return the modules below a folder, without those behind the link."""
    modules = [path.relative_to(folder) for path in folder.rglob("*.py")]
    return [path for path in modules if path.parts[0] != "instrumentors"]


def test_source_distribution_makes_the_same_wheel(wheel: Path, wheel_of_sdist: Path) -> None:
    assert _names(wheel) == _names(wheel_of_sdist)


def test_entry_points_are_those_of_the_table(wheel: Path) -> None:
    entry_points = ConfigParser()
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt")]
        entry_points.read_string(archive.read(name).decode())

    instrumentors = dict(entry_points["opentelemetry_instrumentor"])
    assert sorted(set(RUNTIMES.values())) == sorted(instrumentors.values())
    assert all(name.startswith("kernel_") for name in instrumentors)


def test_link_for_checkouts_leads_to_the_instrumentors() -> None:
    link = ROOT / "otel_kernel" / "instrumentors"

    assert link.is_symlink(), (
        f"{link} must be a link to ../instrumentors: was the checkout made without links?"
    )
    assert (ROOT / "instrumentors").samefile(link), f"{link} must lead to ../instrumentors"


def test_bare_name_of_the_instrumentors_is_refused(installed: Path) -> None:
    result = subprocess.run(
        [installed / "python", "-c", "import instrumentors.numba"],
        cwd=ROOT,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert 1 == result.returncode
    assert (
        "ImportError: import otel_kernel.instrumentors instead of instrumentors"
        == result.stderr.splitlines()[-1]
    )


def test_start_files_are_inert_without_the_variable(installed: Path, tmp_path: Path) -> None:
    code = "import sys; print([name for name in sys.modules if name.startswith('otel_kernel')])"
    outputs = [
        subprocess.run(
            [installed / "python", "-c", code],
            cwd=tmp_path,
            env=_environment(**changes),
            capture_output=True,
            text=True,
            check=True,
        )
        for changes in ({}, {"OTEL_KERNEL_BOOT": "1"})
    ]

    assert ["", ""] == [output.stderr for output in outputs]
    assert "[]\n" == outputs[0].stdout
    assert "otel_kernel.boot" in outputs[1].stdout


def test_run_of_the_installed_wheel_records(installed: Path, tmp_path: Path) -> None:
    shutil.copy(PROGRAM, tmp_path)
    program = [str(installed / "python"), "kernels.py", "subprocess"]
    result = subprocess.run(
        [installed / "otel-kernel", "run", "--recording", "recording.db", "--", *program],
        cwd=tmp_path,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert 0 == result.returncode, result.stderr
    assert "compiled kernel\ncompiled child_kernel\n" == result.stdout
    with closing(sqlite3.connect(tmp_path / "recording.db")) as connection:
        kernels = {
            kernel.rpartition(".")[2] for (kernel,) in connection.execute("SELECT kernel FROM records")
        }
    assert {"kernel", "child_kernel"} == kernels
