"""C++ extensions, AOTInductor's packages and CUDA source."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch_programs import Run

from otel_kernel.records import CompilationOutcome

COMPILED, LOADED = CompilationOutcome.COMPILED, CompilationOutcome.LOADED

pytestmark = pytest.mark.slow


def test_an_extension_is_compiled_once_and_then_loaded(run: Run) -> None:
    cold = run("extensions.py", "extension")
    warm = run("extensions.py", "extension")

    (compiled,) = cold.trips("first")
    (loaded,) = warm.trips("first")

    assert (42, 42) == (cold.value("answer"), warm.value("answer"))
    assert ("torch.cpp_extension", "answer", COMPILED) == (compiled.layer, compiled.kernel, compiled.outcome)
    assert (LOADED, compiled.key) == (loaded.outcome, loaded.key)
    assert compiled.key is not None
    assert True is compiled.attributes["compute.kernel.device_loaded"]
    assert compiled.attributes["compute.kernel.identity"] == loaded.attributes["compute.kernel.identity"]
    assert ([], []) == (cold.trips("again"), warm.trips("again"))


def test_a_changed_extension_is_compiled_under_its_own_name(run: Run) -> None:
    report = run("extensions.py", "changed")

    (other,) = report.trips("another source")
    (wrong,) = report.trips("wrong source")
    (first,) = report.trips("start")

    assert (COMPILED, COMPILED) == (first.outcome, other.outcome)
    assert ["answer"] * 3 == [trip.kernel for trip in (first, other, wrong)]
    assert first.key != other.key
    assert "RuntimeError" == report.value("raised")
    assert ("failed", "RuntimeError") == (wrong.state, wrong.error_type)
    assert [] == [line for line in map(str, report.lines) if "otk_secret_marker" in line]


def test_a_deleted_library_of_an_extension_is_built_again(run: Run, tmp_path: Path) -> None:
    run("extensions.py", "extension")
    for library in tmp_path.glob("extension/*.so"):
        library.unlink()
    (trip,) = run("extensions.py", "extension").trips("first")

    assert COMPILED is trip.outcome


@pytest.mark.timeout(600)  # all of torch's headers, several times
def test_a_model_is_compiled_ahead_of_time_and_loaded(run: Run) -> None:
    report = run("extensions.py", "ahead_of_time")

    (compiled,) = report.trips("compile")
    (loaded,) = report.trips("load")
    (failed,) = report.trips("no package")

    assert ("torch.aot_inductor", COMPILED, None) == (compiled.layer, compiled.outcome, compiled.key)
    assert "unsupported" == compiled.attributes["compute.kernel.key.absent_reason"]
    assert False is compiled.attributes["compute.kernel.device_loaded"]
    assert compiled.attributes["compute.kernel.stage.build"]
    assert ("torch.aot_inductor", "wave", LOADED) == (loaded.layer, loaded.kernel, loaded.outcome)
    assert True is loaded.attributes["compute.kernel.device_loaded"]
    assert [] == report.trips("run")
    assert [1.0] * 8 == report.value("run")
    assert "failed" == failed.state


def test_cuda_source_that_cannot_be_compiled_has_failed(run: Run) -> None:
    report = run("extensions.py", "cuda")

    (trip,) = report.trips("no CUDA")

    assert ("torch.nvrtc", "k", "failed") == (trip.layer, trip.kernel, trip.state)
    assert report.value("raised") is not None
