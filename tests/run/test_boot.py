"""What a Python start costs and changes, with and without the variable that lets otel-kernel boot."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

import otel_kernel
from otel_kernel.boot import RUNTIMES
from run.launching import PYTHON, environment

ROOT = Path(otel_kernel.__file__).parent.parent
SITECUSTOMIZE = ROOT / "otel_kernel" / "sitecustomize"
PTH = Path(__file__).parents[2] / "boot" / "otel_kernel.pth"

BOOT = {"OTEL_KERNEL_BOOT": "1"}
# As in a folder that pip has installed to with `--target`, where no `.pth` is read.
BOOT_BY_SITECUSTOMIZE = {**BOOT, "PYTHONPATH": f"{SITECUSTOMIZE}:{ROOT}"}


def _python(*arguments: str, changes: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PYTHON, *arguments],
        env=environment(changes),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def _says(code: str, *options: str, changes: Mapping[str, str] | None = None) -> str:
    """Return what the code prints, which must be all that happens."""
    result = _python(*options, "-c", code, changes=changes)

    assert (0, "") == (result.returncode, result.stderr)
    return result.stdout.strip()


def _imported(*options: str, changes: Mapping[str, str] | None = None) -> set[str]:
    return set(_says("import sys; print(*sys.modules)", *options, changes=changes).split())


def test_start_up_imports_neither_a_runtime_nor_what_serves_it() -> None:
    imported = _imported(changes=BOOT_BY_SITECUSTOMIZE) - _imported()

    assert {"otel_kernel", "otel_kernel.boot", "otel_kernel.imports"} <= imported
    heavy = {
        *RUNTIMES,
        "typing",
        "wrapt",
        "opentelemetry",
        "logging",
        "dataclasses",
        "inspect",
        "pathlib",
        "subprocess",
    }
    assert set() == imported & heavy


@pytest.mark.parametrize("changes", [{}, {"OTEL_KERNEL_BOOT": "0"}, {"OTEL_KERNEL_BOOT": ""}])
def test_start_without_the_variable_imports_nothing_of_ours(changes: dict[str, str]) -> None:
    code = f"import sys, os; before = set(sys.modules); exec(open({str(PTH)!r}).read())\n"
    code += "print(set(sys.modules) - before, [name for name in before if 'otel_kernel' in name])"

    assert "set() []" == _says(code, changes=changes)


def test_pth_is_one_ascii_line_that_the_interpreter_executes() -> None:
    (line,) = PTH.read_text("ascii").splitlines()

    assert line.startswith("import ")


def test_pth_that_has_outlived_its_package_is_silent() -> None:
    code = f"exec(open({str(PTH)!r}).read()); import sys; print('otel_kernel' in sys.modules)"

    assert "False" == _says(code, "-S", "-I", changes=BOOT)


def test_pth_and_sitecustomize_boot_once() -> None:
    code = f"exec(open({str(PTH)!r}).read()); from otel_kernel import imports\n"
    code += f"print([len(getattr(imports, '_waiting')[runtime]) for runtime in {list(RUNTIMES)}])"

    assert str([1] * len(RUNTIMES)) == _says(code, changes=BOOT_BY_SITECUSTOMIZE)


def test_each_process_that_boots_leaves_its_pid(tmp_path: Path) -> None:
    code = f"import os, subprocess; print(os.getpid(), flush=True); subprocess.run([{PYTHON!r}, '-c', "
    code += "'import os; print(os.getpid())'])"

    pids = _says(code, changes={**BOOT_BY_SITECUSTOMIZE, "OTEL_KERNEL_BOOTED": str(tmp_path)}).split()

    assert 2 == len(pids)
    assert set(pids) == {path.name for path in tmp_path.iterdir()}


def test_boot_survives_a_folder_that_is_gone(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")

    assert "on" == _says("print('on')", changes={**BOOT_BY_SITECUSTOMIZE, "OTEL_KERNEL_BOOTED": gone})


def test_program_finds_no_sitecustomize_where_it_has_none() -> None:
    code = "import sys; print([path for path in sys.path if 'sitecustomize' in path])\n"
    code += "try: import sitecustomize\nexcept ImportError: print('none')"

    assert "[]\nnone" == _says(code, changes=BOOT_BY_SITECUSTOMIZE)


@pytest.mark.parametrize(
    "own",
    [
        "import sys; sys.path.insert(0, '/own'); sys.own = True",
        "raise RuntimeError('own fault')",
        "import no_such_module",
        "import sys; sys.exit(9)",
    ],
)
def test_sitecustomize_of_the_program_runs_as_without_us(own: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(own + "\n")
    code = "import sys; module = sys.modules.get('sitecustomize')\n"
    code += (
        "print(sys.path, module and module.__file__, module and sorted(vars(module)), hasattr(sys, 'own'))"
    )

    alone = _python("-c", code, changes={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    booted = _python("-c", code, changes={**BOOT, "PYTHONPATH": f"{SITECUSTOMIZE}:{tmp_path}:{ROOT}"})

    assert (alone.returncode, alone.stdout) == (booted.returncode, booted.stdout)
    assert alone.stderr.splitlines()[-1:] == booted.stderr.splitlines()[-1:]


def test_start_entry_names_what_the_interpreter_calls() -> None:
    module, _, name = PTH.with_suffix(".start").read_text("ascii").strip().partition(":")

    assert callable(getattr(__import__(module, fromlist=[name]), name))


def test_fault_while_booting_is_silent(tmp_path: Path) -> None:
    """The package is there and its import hook is not, as after half an installation."""
    package = tmp_path / "otel_kernel"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "boot.py").write_text((ROOT / "otel_kernel" / "boot.py").read_text())
    code = "import sys; print(sys.modules['otel_kernel'].__file__)"
    changes = {
        **BOOT,
        "PYTHONPATH": f"{SITECUSTOMIZE}:{tmp_path}",
        "OTEL_KERNEL_BOOTED": str(tmp_path / "words"),
    }
    (tmp_path / "words").mkdir()

    assert str(package / "__init__.py") == _says(code, changes=changes)
    assert [] == list((tmp_path / "words").iterdir())


def test_import_of_the_package_imports_nothing_heavy() -> None:
    code = "import sys; before = set(sys.modules); import otel_kernel; print(*(set(sys.modules) - before))"
    heavy = {"opentelemetry", "wrapt", "logging", "dataclasses", "inspect", "pathlib", "typing", *RUNTIMES}

    assert set() == set(_says(code, changes={"PYTHONPATH": str(ROOT)}).split()) & heavy
