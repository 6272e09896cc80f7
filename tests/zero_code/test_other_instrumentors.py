"""A fault of one instrumentor stops no other, ours or anybody's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from otlp.receiver import Receiver

from zero_code.launching import TESTS, command, compiled, distribution

GROUP = "opentelemetry_instrumentor"
PLUGIN = "zero_code.programs.acme_plugin"


def site(folder: Path, *classes: str) -> dict[str, str]:
    """Install instrumentors that the command loads in this order, before ours, and return what to set."""
    lines = "\n".join(f"{name.lower()} = {PLUGIN}:{name}" for name in classes)
    distribution(folder, "aaa-plugins", **{GROUP: lines})
    return {"PYTHONPATH": os.pathsep.join(map(str, (folder, TESTS)))}


def test_a_fault_of_ours_stops_neither_ours_nor_those_of_others(receiver: Receiver, tmp_path: Path) -> None:
    changes = site(tmp_path / "site", "WithoutAModule", "Speaking")
    done = command(["numba_kernel.py"], receiver, folder=tmp_path, changes=changes)

    assert 0 == done.returncode
    assert "theirs is at work\nimported:\n2\n" == done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("instrumenting by WithoutAModule failed in otel-kernel (AttributeError at ")
    assert ["kernel"] == compiled(receiver)


def test_a_fault_of_ours_at_the_import_of_its_runtime_stops_nothing(
    receiver: Receiver, tmp_path: Path, acme_variables: dict[str, str]
) -> None:
    changes = site(tmp_path / "site", "WithoutPoints", "Speaking")
    changes["PYTHONPATH"] += os.pathsep + acme_variables["PYTHONPATH"]
    done = command(["acme_kernel.py"], receiver, folder=tmp_path, changes=changes)

    assert 0 == done.returncode
    assert "theirs is at work\n" == done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("instrumenting acme at its import failed in otel-kernel (RuntimeError at ")
    assert ["kernel"] == compiled(receiver)


def test_a_fault_of_others_stops_none_of_ours(receiver: Receiver, tmp_path: Path) -> None:
    changes = site(tmp_path / "site", "Raising")
    done = command(["numba_kernel.py"], receiver, folder=tmp_path, changes=changes)

    assert (0, "imported:\n2\n") == (done.returncode, done.stdout)
    assert "RuntimeError: a fault of theirs" in done.stderr
    assert "failed in otel-kernel" not in done.stderr
    assert ["kernel"] == compiled(receiver)


def test_instrumenting_ahead_of_others_leaves_out_what_is_disabled(
    receiver: Receiver, tmp_path: Path
) -> None:
    changes = site(tmp_path / "site", "Raising")
    changes["OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"] = "kernel_numba"
    done = command(["numba_kernel.py"], receiver, folder=tmp_path, changes=changes)

    assert 0 == done.returncode
    assert [] == receiver.trips


@pytest.mark.parametrize("imports", ["import numba", "from numba import njit"])
def test_a_runtime_that_another_has_imported_before_is_instrumented(
    receiver: Receiver, tmp_path: Path, imports: str
) -> None:
    folder = tmp_path / "site"
    distribution(folder, "aaa-early", opentelemetry_pre_instrument="early = early:early")
    (folder / "early.py").write_text(f"{imports}\ndef early(): pass\n")
    changes = {"PYTHONPATH": str(folder)}
    done = command(["numba_kernel.py"], receiver, folder=tmp_path, changes=changes)

    assert (0, "imported: numba\n2\n", "") == (done.returncode, done.stdout, done.stderr)
    assert ["kernel"] == compiled(receiver)
