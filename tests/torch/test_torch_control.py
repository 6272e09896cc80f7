"""What torch handles by itself is no failure, and what the program sees is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch_programs import Report, Run, run_program

pytestmark = pytest.mark.slow

ABANDONED = "compute.kernel.compilation.abandoned"
REASON = "compute.kernel.compilation.reason"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("control")


@pytest.fixture(scope="module")
def frames(folder: Path) -> Report:
    return run_program(folder, "control.py", "frames")


@pytest.fixture(scope="module")
def compilers(folder: Path) -> Report:
    return run_program(folder, "control.py", "compilers")


def last(report: Report, part: str, name: str) -> dict[str, Any]:
    return report.spans(part, name)[-1]


def test_a_frame_beyond_the_recompile_limit_is_given_up(frames: Report) -> None:
    span = last(frames, "recompile limit", "dynamo.frame")

    assert ("UNSET", "retry") == (span["status"], span["attributes"][ABANDONED])
    assert span["attributes"][REASON].startswith("0/1: text == 'bb'")
    assert span["attributes"][REASON].endswith("the recompile limit is reached")
    assert ["compiled", "compiled"] == [
        trip.outcome.value for trip in frames.graphs("recompile limit") if trip.outcome
    ]


def test_a_graph_that_must_be_whole_and_breaks_has_failed(frames: Report) -> None:
    span = last(frames, "a whole graph that breaks", "dynamo.frame")

    assert "Unsupported" == frames.value("raised in a whole graph that breaks")
    assert ("ERROR", "torch._dynamo.exc.Unsupported") == (span["status"], span["attributes"]["error.type"])


def test_a_backend_that_refuses_fails_the_frame_and_no_trip(frames: Report) -> None:
    span = last(frames, "a backend that refuses", "dynamo.frame")

    assert "BackendCompilerFailed" == frames.value("raised in a backend that refuses")
    assert ("ERROR", "torch._dynamo.exc.BackendCompilerFailed") == (
        span["status"],
        span["attributes"]["error.type"],
    )
    assert [] == frames.trips("a backend that refuses")


def test_a_suppressed_error_is_no_failure_of_the_frame(frames: Report) -> None:
    span = last(frames, "a backend that refuses, suppressed", "dynamo.frame")

    assert frames.value("raised in a backend that refuses, suppressed") is None
    assert ("UNSET", "retry") == (span["status"], span["attributes"][ABANDONED])


def test_a_missing_compiler_fails_the_graph(compilers: Report) -> None:
    (trip,) = compilers.trips("no compiler")
    span = last(compilers, "no compiler", "compile ")

    assert "InductorError" == compilers.value("raised in no compiler")
    assert ("failed", "torch._inductor.exc.InductorError") == (trip.state, trip.error_type)
    assert "ERROR" == span["status"]
    assert "torch._inductor.exc.InvalidCxxCompiler" in span["description"]
    assert trip.key is not None
    assert False is trip.attributes["compute.kernel.store.stored"]


def test_a_suppressed_error_is_no_failure_of_the_graph(compilers: Report) -> None:
    (trip,) = compilers.trips("no compiler, suppressed")

    assert compilers.value("raised in no compiler, suppressed") is None
    assert ("abandoned", "retry") == (trip.state, trip.abandoned.value if trip.abandoned else None)
    assert {"UNSET"} == {span["status"] for span in compilers.spans("no compiler, suppressed")}


def test_a_compiler_that_fails_fails_the_graph_and_leaves_the_kernel_to_it(compilers: Report) -> None:
    graph, *kernels = compilers.trips("a compiler that fails")

    assert ("failed", "torch._inductor.exc.InductorError") == (graph.state, graph.error_type)
    assert {"nested"} == {trip.abandoned.value for trip in kernels if trip.abandoned}
    assert kernels


def test_no_error_says_a_text_of_the_program(frames: Report, compilers: Report) -> None:
    for report in (frames, compilers):
        assert [] == [line for line in map(str, report.lines) if "otk_secret_marker" in line]


def test_a_library_that_cannot_be_loaded_fails_the_graph(run: Run, tmp_path: Path) -> None:
    run("control.py", "damaged")
    for library in tmp_path.glob("store/*/*.main.so"):
        library.unlink()  # a mapped file must not be written to
        library.write_text("junk")
    report = run("control.py", "damaged")

    loaded, kernel, again, kernel_again = report.trips("first")
    (autograd,) = report.spans("first", "aot_autograd")

    assert "BackendCompilerFailed" == report.value("raised in first")
    assert ["retry", "nested", None, "nested"] == [
        trip.abandoned.value if trip.abandoned else None for trip in (loaded, kernel, again, kernel_again)
    ]
    assert ("failed", "ImportError") == (again.state, again.error_type)
    assert "ImportError" == kernel.attributes["compute.kernel.store.rejected"]
    assert "bypass" == autograd["attributes"]["compute.kernel.store.lookup"]
    assert "its entry could not be loaded: ImportError" == autograd["attributes"][REASON]


def test_an_analysis_that_starts_again_is_no_failure(run: Run) -> None:
    report = run("control.py", "restarts")

    assert report.value("raised in restart") is None
    assert {"UNSET"} == {span["status"] for span in report.spans()}
    assert {"compiled"} == {trip.outcome.value if trip.outcome else "" for trip in report.trips()}
