"""`doctor` on this installation, and on ones that are broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from json_schemas import errors
from otlp.receiver import Receiver

from cli.command import otel_kernel, refusal
from otel_kernel.boot import RUNTIMES

HOST = os.uname().nodename


class Examined:
    """What doctor has found, with its exit code."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        assert "" == done.stderr, done
        self.code = done.returncode
        self.data: dict[str, Any] = json.loads(done.stdout)
        assert [] == errors("doctor", self.data)

    def __getitem__(self, area_and_name: str) -> dict[str, Any]:
        area, _, name = area_and_name.partition(" ")
        (found,) = [
            each for each in self.data["findings"] if each["area"] == area and each["name"].startswith(name)
        ]
        return dict(found)

    def states(self, area: str) -> list[str]:
        return [each["state"] for each in self.data["findings"] if each["area"] == area]


def examined(folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> Examined:
    """Run doctor for Numba with a home in `folder`."""
    environment = {
        "XDG_STATE_HOME": str(folder),
        "NUMBA_CACHE_DIR": str(folder / "store"),
        **(variables or {}),
    }
    return Examined(otel_kernel("doctor", "--json", "--runtime", "numba", *arguments, variables=environment))


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Examined:
    with Receiver() as receiver:
        return examined(tmp_path_factory.mktemp("well"), "--otlp", receiver.endpoint("http/protobuf"))


def test_a_good_installation_needs_no_attention(well: Examined) -> None:
    assert (0, sys.executable) == (well.code, well.data["executable"])
    for area in ("runtime", "store", "recording", "start", "opentelemetry", "endpoint"):
        assert {"well"} == set(well.states(area)), well.data


def test_the_points_of_a_runtime_are_counted(well: Examined) -> None:
    import numba

    facts = well["runtime numba"]["facts"]

    assert (numba.__version__, []) == (facts["version"], facts["missing"])
    assert facts["patched"] > 5


def test_the_cost_of_a_start_is_measured(well: Examined) -> None:
    facts = well["start cost"]["facts"]

    assert facts["bare_ns"] > 1_000_000
    assert facts["booted_ns"] > 1_000_000


def test_findings_are_readable_and_tell_what_to_do(tmp_path: Path) -> None:
    done = otel_kernel(
        "doctor",
        "--runtime",
        "numba",
        "--otlp",
        "http://127.0.0.1:9",
        variables={"XDG_STATE_HOME": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "store")},
    )
    lines = done.stdout.splitlines()

    assert (1, "") == (done.returncode, done.stderr)
    assert 80 >= max(map(len, lines[1:]))  # the first line names the interpreter
    assert ["Runtimes", "Stores", "Recording", "Start of a process", "OpenTelemetry", "OTLP endpoint"] == [
        line for line in lines[1:] if line and not line.startswith(" ")
    ]
    assert lines[3].startswith("  well       numba: version ")
    assert (
        "  attention  http/protobuf http://127.0.0.1:9/v1/traces: cannot be reached:\n"
        "             Connection refused\n"
        "             -> start a Collector there, or correct --otlp\n"
    ) in done.stdout


def test_a_runtime_that_is_not_known_is_refused() -> None:
    assert "'acme' is not one of " in refusal("doctor", "--runtime", "acme")
    assert all(f"'{name}'" in refusal("doctor", "--runtime", "acme") for name in RUNTIMES)


@pytest.mark.parametrize(
    ("removed", "state"),
    [
        ("numba.core.ccallback:CFunc._compile_uncached", "well"),
        ("numba.core.ccallback:CFunc.compile", "attention"),
    ],
)
def test_a_point_that_is_missing_is_named(tmp_path: Path, removed: str, state: str) -> None:
    module, _, symbol = removed.partition(":")
    holder, _, name = symbol.partition(".")
    (tmp_path / "sitecustomize.py").write_text(
        "from otel_kernel.imports import when_imported\n"
        f"when_imported({module!r}, lambda module: delattr(module.{holder}, {name!r}))\n"
    )

    found = examined(tmp_path, variables={"PYTHONPATH": str(tmp_path)})
    runtime = found["runtime numba"]

    assert state == runtime["state"]
    assert [f"{module}.{symbol}"] == runtime["facts"]["missing"]
    assert f"{module}.{symbol}" in runtime["text"]
    assert (0 if state == "well" else 1) == found.code


def a_distribution(folder: Path, name: str, version: str, *requires: str) -> None:
    """Make a folder on PYTHONPATH say that a distribution is installed."""
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    metadata.write_text("\n".join([*lines, *(f"Requires-Dist: {each}" for each in requires), ""]))


def test_an_unsupported_version_is_said_with_what_is_supported(tmp_path: Path) -> None:
    a_distribution(tmp_path, "numba", "0.60.0")

    found = examined(tmp_path, variables={"PYTHONPATH": str(tmp_path)})

    assert "attention" == found["runtime numba"]["state"]
    assert "version 0.60.0 is not among the supported numba" in found["runtime numba"]["text"]
    assert 'pip install "numba >= 0.61, < 1"' in found["runtime numba"]["advice"]
    assert "0.60.0" == found["runtime numba"]["facts"]["version"]


def test_a_runtime_that_cannot_be_imported_is_said(tmp_path: Path) -> None:
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text("raise RuntimeError('no libtbb')\n")

    found = examined(tmp_path, variables={"PYTHONPATH": str(tmp_path)})

    assert "cannot be imported: RuntimeError: no libtbb" == found["runtime numba"]["text"]
    assert "make `import numba` work first" == found["runtime numba"]["advice"]
    assert [] == found.states("store")
    assert 1 == found.code


def test_a_store_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    found = examined(tmp_path, variables={"NUMBA_CACHE_DIR": str(tmp_path / "file" / "store")})

    assert "attention" == found["store numba"]["state"]
    assert f"cannot be written: {tmp_path}/file/store (NUMBA_CACHE_DIR)" == found["store numba"]["text"]
    assert found["store numba"]["facts"]["writable"] is False
    assert 1 == found.code


def test_packages_that_do_not_go_together_are_said(tmp_path: Path) -> None:
    a_distribution(tmp_path, "opentelemetry-sdk", "1.45.2", "opentelemetry-semantic-conventions==0.1b0")
    a_distribution(tmp_path, "opentelemetry-instrumentation", "0.48b0")

    found = examined(tmp_path, variables={"PYTHONPATH": str(tmp_path)})

    assert 1 == found.code
    assert found["opentelemetry set"]["text"].startswith("no coherent set: api ")
    assert "0.48b0" == found["opentelemetry set"]["facts"]["opentelemetry-instrumentation"]
    sdk, ours = found["opentelemetry opentelemetry-sdk"], found["opentelemetry otel-kernel"]
    assert "1.45.2 needs opentelemetry-semantic-conventions==0.1b0, and " in sdk["text"]
    assert " goes with 0." in sdk["advice"]
    assert ours["text"].endswith(", and 0.48b0 is installed")
    assert ours["advice"].endswith(
        "all its releases are betas, and pip takes the old 0.48b0 unless one is named"
    )


def test_an_interpreter_in_which_nothing_boots_is_said(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    here = [path for path in sys.path if path and Path(path).is_dir()]
    root = str(Path(__file__).parents[2])
    asks = "import sys; sys.path += {}; from otel_kernel.cli import main; main()"

    def look(paths: list[str], variables: Mapping[str, str]) -> Examined:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return Examined(
            subprocess.run(
                [
                    tmp_path / "venv/bin/python",
                    "-c",
                    asks.format(paths),
                    "doctor",
                    "--json",
                    "--runtime",
                    "triton",
                ],
                env={**environment, "XDG_STATE_HOME": str(tmp_path), **variables},
                capture_output=True,
                text=True,
                check=False,
            )
        )

    by_path = look([], {"PYTHONPATH": os.pathsep.join([root, *here])})
    nowhere = look([root, *here], {})

    assert ("note", {"pth": False, "sitecustomize": True}) == (
        by_path["start boot"]["state"],
        by_path["start boot"]["facts"],
    )
    assert "well" == by_path["start cost"]["state"]
    assert ["attention"] == nowhere.states("start")
    assert str(tmp_path / "venv") in nowhere["start boot"]["advice"]
    assert 1 == nowhere.code
