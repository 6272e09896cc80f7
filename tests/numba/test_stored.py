"""Numba's file store, in processes of their own."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest
from conformance.report import Report
from numba import __version__ as numba_version
from numba_programs import Programs
from packaging.version import Version

from otel_kernel.records import CompilationOutcome, Trip

STAMP_IS_A_DIGEST = Version(numba_version) >= Version("0.68")
"""Below, the stamp of a source file is its time of modification and its size."""

COMPONENT = "compute.kernel.key.component."
STORE = "compute.kernel.store."


def only(report: Report, kernel: str, layer: str = "numba") -> Trip:
    (trip,) = [trip for trip in report.trips_of(kernel) if trip.layer == layer]
    return trip


STORED = [
    ("stored.function", "numba"),
    ("stored.elementwise", "numba"),
    ("stored.general", "numba"),
    ("stored.general", "numba.ufunc"),
    ("stored.callback", "numba"),
    ("stored.parallel", "numba"),
    ("stored.caller", "numba"),
    ("stored.Model.step", "numba"),
]


@pytest.mark.parametrize(("kernel", "layer"), STORED)
def test_every_kind_is_stored_and_then_loaded(stored: tuple[Report, Report], kernel: str, layer: str) -> None:
    compiled, loaded = (only(report, kernel, layer) for report in stored)
    entry = Path(str(compiled.attributes[STORE + "location"]), str(compiled.attributes[STORE + "entry"]))

    assert (CompilationOutcome.COMPILED, CompilationOutcome.LOADED) == (compiled.outcome, loaded.outcome)
    assert compiled.key is not None
    assert compiled.key == loaded.key
    assert compiled.attributes["compute.kernel.identity"] == loaded.attributes["compute.kernel.identity"]
    assert compiled.attributes[STORE + "stored"] is True
    assert STORE + "stored" not in loaded.attributes
    assert "numba.file" == compiled.attributes[STORE + "kind"]
    assert entry.stat().st_size == compiled.attributes["compute.kernel.artifact.size"]
    assert entry.stat().st_size == loaded.attributes["compute.kernel.artifact.size"]
    assert compiled.attributes[STORE + "entry"] == loaded.attributes[STORE + "entry"]
    assert (None, None) == (loaded.ir, loaded.source)
    assert stored[0].values == stored[1].values


def test_the_components_of_a_key(stored: tuple[Report, Report]) -> None:
    trip = only(stored[0], "stored.function")
    components = {
        name.removeprefix(COMPONENT): str(value)
        for name, value in trip.attributes.items()
        if name.startswith(COMPONENT)
    }
    source = hashlib.sha256(Path(str(trip.attributes["code.file.path"])).read_bytes()).hexdigest()

    assert components["base_name"].startswith(f"stored.function-{trip.attributes['code.line.number']}.py3")
    assert source == components["source_digest"]
    assert (source == components["source_stamp"]) is STAMP_IS_A_DIGEST
    assert "(float64,)" == components["signature"]
    assert "fastmath=True" in components["options"]
    assert "OPT=3" in components["options"]
    assert numba_version == components["numba"]
    assert f"{sys.version_info.major}.{sys.version_info.minor}" == components["python"]
    assert f"cpu:{components['cpu']}" == trip.attributes["compute.kernel.target"]
    assert components["cpu_features"].startswith("blake2b:")
    assert hashlib.sha256(b"").hexdigest() == components["closure"]
    assert {"bytecode", "llvm", "triple"} < components.keys()


def test_two_closures_of_one_function_have_two_keys(stored: tuple[Report, Report]) -> None:
    one, two = stored[0].trips_of("stored.closure_over.<locals>.closure")

    assert one.key != two.key
    assert one.attributes[COMPONENT + "bytecode"] == two.attributes[COMPONENT + "bytecode"]
    assert one.attributes[COMPONENT + "closure"] != two.attributes[COMPONENT + "closure"]
    assert one.attributes[STORE + "entry"] != two.attributes[STORE + "entry"]


def test_a_loaded_caller_needs_no_callee(stored: tuple[Report, Report]) -> None:
    cold, warm = stored

    assert only(cold, "stored.caller").seq == only(cold, "stored.callee").parent_seq
    assert [] == warm.trips_of("stored.callee")


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        ("stored.with_lifted_loop", "Numba does not store lifted code"),
        ("stored.with_dynamic_global", "Numba does not store dynamic globals"),
        ("stored.switched_off", "the cache of this function is disabled"),
    ],
)
def test_what_is_not_stored_says_why(stored: tuple[Report, Report], kernel: str, reason: str) -> None:
    for report in stored:
        trip = only(report, kernel)

        assert CompilationOutcome.COMPILED is trip.outcome
        assert trip.attributes[STORE + "stored"] is False
        assert reason == trip.attributes[STORE + "reason"]
        assert STORE + "entry" not in trip.attributes


def test_a_cache_that_is_switched_off_gives_no_key(stored: tuple[Report, Report]) -> None:
    trip = only(stored[0], "stored.switched_off")

    assert (None, "bypassed") == (trip.key, trip.attributes["compute.kernel.key.absent_reason"])


def test_the_loop_of_a_ufunc_is_compiled_in_every_process(stored: tuple[Report, Report]) -> None:
    for report in stored:
        loop = only(report, "stored.elementwise", "numba.ufunc")

        assert CompilationOutcome.COMPILED is loop.outcome
        assert "unsupported" == loop.attributes["compute.kernel.key.absent_reason"]
        assert STORE + "kind" not in loop.attributes


def test_other_settings_load_the_same_artifact_and_show(programs: Programs) -> None:
    programs.copy("one")
    compiled = only(programs.run("one"), "one.kernel")
    loaded = only(programs.run("one", NUMBA_OPT="0"), "one.kernel")
    differing = {
        name for name in compiled.attributes if compiled.attributes[name] != loaded.attributes.get(name)
    }

    assert CompilationOutcome.LOADED is loaded.outcome
    assert compiled.key == loaded.key
    assert {COMPONENT + "options"} == {name for name in differing if name.startswith(COMPONENT)}
    assert "OPT=3" in str(compiled.attributes[COMPONENT + "options"])
    assert "OPT=0" in str(loaded.attributes[COMPONENT + "options"])


def test_the_same_source_with_another_time(programs: Programs) -> None:
    path = programs.copy("one")
    before = only(programs.run("one"), "one.kernel")
    os.utime(path, (1, 1))
    after = only(programs.run("one"), "one.kernel")

    assert before.attributes[COMPONENT + "source_digest"] == after.attributes[COMPONENT + "source_digest"]
    if STAMP_IS_A_DIGEST:
        assert (CompilationOutcome.LOADED, before.key) == (after.outcome, after.key)
    else:
        assert CompilationOutcome.COMPILED is after.outcome
        assert before.key != after.key
        assert before.attributes[COMPONENT + "source_stamp"] != after.attributes[COMPONENT + "source_stamp"]


def test_another_source_is_compiled_under_another_key(programs: Programs) -> None:
    path = programs.copy("one")
    before = only(programs.run("one"), "one.kernel")
    path.write_text(path.read_text().replace("x + 1", "x + 2"))
    after = only(programs.run("one"), "one.kernel")

    assert CompilationOutcome.COMPILED is after.outcome
    assert before.key is not None
    assert after.key is not None
    assert before.key.build_id == after.key.build_id
    assert before.key.id != after.key.id
    assert before.attributes["compute.kernel.identity"] != after.attributes["compute.kernel.identity"]


def test_another_processor_is_compiled_by_another_build(programs: Programs) -> None:
    programs.copy("one")
    before = only(programs.run("one"), "one.kernel")
    after = only(programs.run("one", NUMBA_CPU_NAME="generic"), "one.kernel")

    assert CompilationOutcome.COMPILED is after.outcome
    assert before.key is not None
    assert after.key is not None
    assert before.key.id == after.key.id
    assert before.key.build_id != after.key.build_id
    assert "cpu:generic" == after.attributes["compute.kernel.target"]
    assert before.attributes["compute.kernel.identity"] != after.attributes["compute.kernel.identity"]


def test_without_a_folder_of_its_own_the_store_is_beside_the_source(programs: Programs) -> None:
    path = programs.copy("one")
    trip = only(programs.run("one", NUMBA_CACHE_DIR=""), "one.kernel")

    assert str(path.parent / "__pycache__") == trip.attributes[STORE + "location"]


def test_kernels_of_one_name_in_two_modules(programs: Programs) -> None:
    programs.copy("plain", "first/same")
    programs.copy("plain", "second/same")
    both = "from conformance.harness import watch\nwatch()\nimport first.same, second.same\n"
    (programs.folder / "both.py").write_text(both)
    report = programs.run("both")

    first, second = only(report, "first.same.kernel"), only(report, "second.same.kernel")

    assert first.attributes[STORE + "entry"] == second.attributes[STORE + "entry"]
    assert first.attributes[STORE + "location"] != second.attributes[STORE + "location"]
    assert {True} == {trip.attributes[STORE + "stored"] for trip in (first, second)}


def test_a_moved_store_still_loads(programs: Programs) -> None:
    programs.copy("one")
    compiled = only(programs.run("one"), "one.kernel")
    moved = programs.store.rename(programs.folder / "moved")
    loaded = only(programs.run("one", NUMBA_CACHE_DIR=str(moved)), "one.kernel")

    assert (CompilationOutcome.LOADED, compiled.key) == (loaded.outcome, loaded.key)
    assert str(loaded.attributes[STORE + "location"]).startswith(str(moved))
