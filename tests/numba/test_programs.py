"""Programs around Numba: notebooks, worker pools, and settings that leave nothing to compile."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from conformance.report import ROOT, Report
from numba import njit, types
from numba_programs import Programs
from telemetry import Telemetry

from otel_kernel.instrumentors.numba import NumbaInstrumentor
from otel_kernel.records import CompilationOutcome, Trip


def of_process(report: Report, pid: int) -> list[Trip]:
    return [Trip.from_json(line.value) for line in report.lines if (line.kind, line.pid) == ("trip", pid)]


def test_kernels_of_a_notebook(programs: Programs) -> None:
    programs.copy("cells")
    cold, warm = programs.run("cells"), programs.run("cells")
    stored, plain, again = cold.trips
    loaded = warm.trips[0]

    assert [2, 3, 4] == cold.values["results"] == warm.values["results"]
    assert ["__main__.stored", "__main__.plain", "__main__.plain"] == [trip.kernel for trip in cold.trips]
    assert str(stored.attributes["code.file.path"]).startswith("<ipython-input")
    assert "no file" == stored.attributes["compute.kernel.key.component.source_digest"]
    assert stored.attributes["compute.kernel.store.stored"] is True
    assert (CompilationOutcome.LOADED, stored.key) == (loaded.outcome, loaded.key)
    # The cell was edited and run again: one name, other code.
    assert plain.attributes["compute.kernel.identity"] != again.attributes["compute.kernel.identity"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_function_that_a_pool_worker_is_handed(programs: Programs, method: str) -> None:
    programs.copy("pool")
    report = programs.run_script("pool", method)
    worker, result, signatures = report.values["worker"]
    in_parent, in_worker = of_process(report, report.values["parent"]), of_process(report, worker)

    assert (2, 2) == (result, signatures)
    assert {"(int64,)"} == {trip.attributes["compute.kernel.specialization"] for trip in in_parent}
    assert {"(float64,)", "(int64,)"} == {
        trip.attributes["compute.kernel.specialization"] for trip in in_worker
    } | ({"(int64,)"} if method == "fork" else set())
    assert in_parent[0].session.run == in_worker[0].session.run
    assert in_parent[0].session.id != in_worker[0].session.id


def test_functions_and_their_compile_can_be_pickled_and_copied(told: Telemetry) -> None:
    @njit
    def f(x: int) -> int:
        return x + 1

    dispatcher: Any = f
    again = pickle.loads(pickle.dumps(dispatcher))
    compile_ = pickle.loads(pickle.dumps(dispatcher.compile))
    copy.copy(dispatcher.compile)((types.float64,))

    assert 2 == again(1)
    assert again is compile_.__self__
    assert ["(float64,)", "(int64,)"] == [
        trip.attributes["compute.kernel.specialization"] for trip in told.trips
    ]


def test_compile_looks_as_it_did(told: Telemetry) -> None:
    from numba.core.dispatcher import Dispatcher

    patched: Any = Dispatcher.compile
    NumbaInstrumentor().uninstrument()
    original: Any = Dispatcher.compile
    NumbaInstrumentor().instrument()

    assert patched is not original
    assert (original.__name__, original.__qualname__, original.__module__, original.__doc__) == (
        patched.__name__,
        patched.__qualname__,
        patched.__module__,
        patched.__doc__,
    )
    assert patched.__wrapped__ is original


def test_nothing_is_compiled_where_numba_is_switched_off(programs: Programs) -> None:
    programs.copy("one")
    report = programs.run("one", NUMBA_DISABLE_JIT="1")

    assert 2.5 == report.values["result"]
    assert ([], []) == (report.trips, report.logs)


def test_the_simulator_of_another_target_changes_nothing(programs: Programs) -> None:
    programs.copy("one")
    report = programs.run("one", NUMBA_ENABLE_CUDASIM="1")

    assert ["one.kernel"] == [trip.kernel for trip in report.trips]
    assert [] == report.logs


def test_an_unsupported_version_is_left_alone_and_named(programs: Programs) -> None:
    """A distribution of an older version stands in front of the real one, for whoever asks for the version."""
    programs.copy("one")
    metadata = programs.folder / "numba-0.50.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: numba\nVersion: 0.50.0\n")
    report = programs.run("one")

    assert 2.5 == report.values["result"]
    assert [] == report.trips
    assert 1 == len(report.logs)
    assert report.logs[0].startswith("numba 0.50.0 is not instrumented: ")
    assert "numba>=0.61,<1" in report.logs[0].replace(" ", "") or "numba<1,>=0.61" in report.logs[0]


def test_a_failed_save_is_the_programs_exception_and_is_raised_once(programs: Programs) -> None:
    programs.copy("read_only")
    report = programs.run("read_only")
    (trip,) = report.trips

    assert ("PermissionError", 2.5) == (report.values["raised"], report.values["result"])
    assert ("failed", "PermissionError") == (trip.state, trip.error_type)
    assert trip.attributes["compute.kernel.store.stored"] is False
    assert "saving raised PermissionError" == trip.attributes["compute.kernel.store.reason"]
    assert "compute.kernel.key.absent_reason" not in trip.attributes


def test_a_fork_while_the_compiler_is_locked_is_no_worse(programs: Programs) -> None:
    programs.copy("forked")
    without, with_us = programs.run_script("forked", "without"), programs.run_script("forked", "with")

    assert 7 == without.values["launch"]
    assert without.values == with_us.values


def test_the_example_is_compiled_once_and_then_loaded(programs: Programs) -> None:
    example = ROOT / "examples" / "numba_pricing.py"
    (programs.folder / "example.py").write_text(
        "import runpy\nfrom conformance.harness import watch\nwatch()\n"
        f"try:\n    runpy.run_path({str(example)!r}, run_name='__main__')\n"
        "except SystemExit as end:\n    assert end.code in (0, None)\n"
    )
    cold, warm = programs.run("example"), programs.run("example")

    def outcomes(report: Report) -> dict[str, str]:
        return {
            trip.kernel.removeprefix("__main__."): trip.outcome.value
            for trip in report.trips
            if trip.outcome and trip.layer == "numba" and trip.kernel.startswith("__main__.")
        }

    kernels = {"drift", "payoff", "simulate", "discount", "running_mean", "confidence", "squeeze"}

    assert dict.fromkeys(kernels, "compiled") == outcomes(cold)
    # Callees are in the machine code of their callers; what is not stored is compiled again.
    assert {
        **dict.fromkeys(("simulate", "discount", "running_mean", "squeeze"), "loaded"),
        "confidence": "compiled",
    } == outcomes(warm)
