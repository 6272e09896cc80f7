"""A report says which parts of a key differ from an earlier trip of the same kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from written_trips import write_recording

from otel_kernel import semconv
from otel_kernel.records import CompilationOutcome, KernelCacheKey, Session, Trip
from otel_kernel.report.key_changes import KeyChange
from otel_kernel.report.opening import opened_recording
from otel_kernel.report.summary import LISTED, summarize
from report.shop import COMPILED, LOADED, a_trip

PARTS = {"options": "OPT=3", "signature": "(float64,)", "source_digest": "ab12", "source_stamp": "(1.0, 90)"}


class Story:
    """Trips of one kernel, each later than the one before."""

    def __init__(self) -> None:
        self.trips: list[Trip] = []

    def add(
        self,
        run: int,
        outcome: CompilationOutcome,
        key: int | None,
        *,
        process: int = 0,
        kernel: str = "shop.price",
        specialization: str | None = "(float64,)",
        identity: str | None = "1" * 32,
        other: str | None = None,
        **parts: str,
    ) -> None:
        attributes: dict[str, str | int | bool | None] = {
            semconv.SPECIALIZATION: specialization,
            semconv.IDENTITY: identity,
            semconv.KEY_COMPONENT_OTHER: other,
            **{semconv.KEY_COMPONENT + name: value for name, value in {**PARTS, **parts}.items()},
        }
        trip = a_trip(
            Session(id=f"{run:016x}{process:016x}", run=f"{run:032x}"),
            len(self.trips),
            kernel,
            len(self.trips),
            1,
            outcome,
            key=None if key is None else KernelCacheKey(id=key, build_id=1),
            attributes={name: value for name, value in attributes.items() if value is not None},
        )
        self.trips.append(trip)

    def changes(self, path: Path, run: int | None = None) -> list[KeyChange]:
        """Return what the report says about a run, or about all."""
        path.mkdir(exist_ok=True)
        with opened_recording(write_recording(path / "r.db", self.trips)) as connection:
            return list(summarize(connection, None if run is None else f"{run:032x}").key_changes)


def differing(changes: list[KeyChange]) -> list[tuple[str, ...]]:
    return [change.differing for change in changes]


def test_a_new_stamp_on_the_same_bytes_compiles_again_with_an_equal_digest(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1)
    story.add(2, COMPILED, 2, source_stamp="(2.0, 90)")

    assert [
        KeyChange(
            layer="numba",
            kernel="shop.price",
            outcome="compiled",
            same_key=False,
            differing=("source_stamp",),
            equal=("options", "signature", "source_digest"),
            trips=1,
            session=story.trips[1].session.id,
            seq=1,
            earlier_session=story.trips[0].session.id,
            earlier_seq=0,
        )
    ] == story.changes(tmp_path, run=2)


def test_an_artifact_made_with_other_options_is_loaded_under_an_equal_key(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1)
    story.add(2, LOADED, 1, options="OPT=0")
    story.add(3, LOADED, 1, options="OPT=0")

    for run in (2, 3):
        (change,) = story.changes(tmp_path / str(run), run)

        assert ("loaded", True, ("options",)) == (change.outcome, change.same_key, change.differing)
        assert "source_digest" in change.equal
        assert 0 == change.earlier_seq


def test_what_does_not_differ_is_not_mentioned(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1)
    story.add(2, COMPILED, 1)
    story.add(3, LOADED, 1)
    story.add(4, COMPILED, None)

    assert [] == story.changes(tmp_path)


def test_another_specialization_or_kernel_is_not_compared(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1)
    story.add(1, COMPILED, 2, specialization="(int64,)", signature="(int64,)")
    story.add(1, COMPILED, 3, specialization=None, signature="()")
    story.add(1, COMPILED, 4, kernel="shop.tax", options="OPT=0")

    assert [] == story.changes(tmp_path)


def test_earlier_runs_count_as_earlier_but_only_the_run_is_reported(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1)
    story.add(2, COMPILED, 2, options="OPT=0")
    story.add(3, LOADED, 2, options="OPT=0")

    assert [] == story.changes(tmp_path / "3", run=3)
    assert [("options",)] == differing(story.changes(tmp_path / "2", run=2))
    assert [("options",)] == differing(story.changes(tmp_path / "all"))


def test_a_trip_is_compared_with_what_it_has_most_in_common_with(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1, closure="a")
    story.add(1, COMPILED, 2, closure="b")
    story.add(2, COMPILED, 3, closure="a", source_stamp="(2.0, 90)")

    (change,) = story.changes(tmp_path, run=2)

    assert (("source_stamp",), 0) == (change.differing, change.earlier_seq)


def test_two_functions_of_one_name_in_a_process_are_not_compared(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1, identity="1" * 32, source_digest="1")
    story.add(1, COMPILED, 2, identity="2" * 32, source_digest="2")

    assert [] == story.changes(tmp_path)


def test_edited_code_is_compared_with_the_code_before(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1, identity="1" * 32, source_digest="1")
    story.add(2, COMPILED, 2, identity="2" * 32, source_digest="2")

    assert [("source_digest",)] == differing(story.changes(tmp_path, run=2))


def test_trips_with_the_same_change_are_counted_together(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1)
    for number in range(3):
        story.add(2, LOADED, 1, process=number, options="OPT=0")

    (change,) = story.changes(tmp_path, run=2)

    assert (3, 3) == (change.trips, change.seq)


def test_a_key_that_differs_in_no_known_part_says_so(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1)
    story.add(2, COMPILED, 2)

    (change,) = story.changes(tmp_path, run=2)

    assert ((), False) == (change.differing, change.same_key)


def test_parts_that_found_no_place_of_their_own_are_compared_too(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1, other=json.dumps({"flag": "1", "mode": "x"}))
    story.add(2, COMPILED, 2, other=json.dumps({"flag": "2", "mode": "x"}))
    story.add(3, COMPILED, 3, other="{oops")

    assert [("flag",)] == differing(story.changes(tmp_path / "2", run=2))
    assert [("flag", "mode")] == differing(story.changes(tmp_path / "3", run=3))


def test_only_the_newest_changes_are_listed(tmp_path: Path) -> None:
    story = Story()
    kernels = [f"shop.k{number}" for number in range(LISTED + 2)]
    for number, kernel in enumerate(kernels):
        story.add(1, COMPILED, number, kernel=kernel)
    for number, kernel in enumerate(kernels):
        story.add(2, COMPILED, 1000 + number, kernel=kernel, options="OPT=0")

    assert kernels[:1:-1] == [change.kernel for change in story.changes(tmp_path, run=2)]


PROGRAM = """
import sys
import otel_kernel
otel_kernel.instrument(recording=sys.argv[1])
from numba import njit

@njit(cache=True)
def price(x):
    return x * 1.19

price(1.0)
"""


def test_numba_loads_what_was_compiled_with_other_options_and_the_report_says_so(tmp_path: Path) -> None:
    program, recording = tmp_path / "shop.py", tmp_path / "r.db"
    program.write_text(PROGRAM)
    for number, optimization in enumerate(("3", "0"), 1):
        variables = {"NUMBA_OPT": optimization, "OTEL_KERNEL_RUN": f"{number:032x}"}
        subprocess.run(
            [sys.executable, str(program), str(recording)], env={**os.environ, **variables}, check=True
        )

    with opened_recording(recording) as connection:
        (change,) = summarize(connection, f"{2:032x}").key_changes

    assert ("__main__.price", "loaded", True) == (change.kernel, change.outcome, change.same_key)
    assert ("options",) == change.differing
    assert "source_digest" in change.equal
