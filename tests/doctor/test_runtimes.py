"""A runtime that is not installed costs nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from otel_kernel.doctor.findings import Area, Finding, State
from otel_kernel.doctor.runtimes import look

ABSENT = Finding(Area.RUNTIME, "acme", State.ABSENT, "not installed")


def test_a_runtime_that_is_not_installed_is_absent() -> None:
    assert [ABSENT] == list(look(["acme"]))


def test_a_folder_of_that_name_is_no_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    assert [ABSENT] == list(look(["acme"]))
