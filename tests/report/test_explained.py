"""A report says which parts of a key differ from an earlier trip of the same kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from written_trips import write_recording

from otel_kernel import semconv
from otel_kernel.records import AttributeValue, CompilationOutcome, KernelCacheKey, Session, Trip
from otel_kernel.report.components import Kind, Part
from otel_kernel.report.explained import Explained
from otel_kernel.report.explanation import explain_kernel
from otel_kernel.report.kernels import Kernel
from otel_kernel.report.opening import opened_recording
from otel_kernel.report.summary import LISTED, summarize
from otel_kernel.report.why import Reason
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
        line: int | None = None,
        more: Mapping[str, str] | None = None,
        **parts: str,
    ) -> None:
        attributes: dict[str, str | int | bool | None] = {
            semconv.SPECIALIZATION: specialization,
            semconv.IDENTITY: identity,
            semconv.KEY_COMPONENT_OTHER: other,
            semconv.CODE_FILE_PATH: None if line is None else "/srv/shop.py",
            semconv.CODE_LINE_NUMBER: line,
            **{
                semconv.KEY_COMPONENT + name: value
                for name, value in {**PARTS, **parts, **(more or {})}.items()
                if key is not None
            },
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

    def explained(self, path: Path, run: int | None = None) -> list[Explained]:
        """Return what the report says about a run, or about all."""
        path.mkdir(exist_ok=True)
        with opened_recording(write_recording(path / "r.db", self.trips)) as connection:
            return list(summarize(connection, None if run is None else f"{run:032x}").explained)


def told(entries: list[Explained]) -> list[tuple[Reason, list[str]]]:
    """Return the reasons, and the parts that differ."""
    return [(each.why.reason, [part.name for part in each.why.differing]) for each in entries]


def test_a_new_stamp_on_the_same_bytes_is_an_excess_miss(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1)
    story.add(2, COMPILED, 2, source_stamp="(2.0, 90)")

    (entry,) = story.explained(tmp_path, run=2)

    assert Kernel("numba", "numba", "shop.price") == entry.kernel
    assert Reason.EXCESS is entry.why.reason
    assert (Part("source_stamp", Kind.STAMP, "(1.0, 90)", "(2.0, 90)"),) == entry.why.differing
    assert ("options", "signature", "source_digest") == entry.why.equal
    assert entry.why.earlier is not None
    assert (1, 0) == (entry.record.seq, entry.why.earlier.seq)


def test_an_artifact_made_with_other_options_is_loaded_under_an_equal_key(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1)
    story.add(2, LOADED, 1, options="OPT=0")
    story.add(3, LOADED, 1, options="OPT=0")

    for run in (2, 3):
        (entry,) = story.explained(tmp_path / str(run), run)

        assert [(Reason.OTHER_ARTIFACT, ["options"])] == told([entry])
        assert entry.why.earlier is not None
        assert ("loaded", 0) == (entry.record.outcome, entry.why.earlier.seq)


def test_an_artifact_is_the_same_wherever_and_whenever_it_was_made(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1, made_in="worker")
    story.add(2, LOADED, 1, made_in="bundle", source_stamp="(2.0, 90)")

    assert [] == story.explained(tmp_path)


def test_what_is_new_or_as_it_should_be_is_not_mentioned(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1)
    story.add(1, COMPILED, 2, specialization="(int64,)", signature="(int64,)", identity="2" * 32)
    story.add(2, LOADED, 1)
    story.add(2, COMPILED, 4, kernel="shop.tax", options="OPT=0")

    assert [] == story.explained(tmp_path)


def test_earlier_runs_count_as_earlier_but_only_the_run_is_reported(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1)
    story.add(2, COMPILED, 2, options="OPT=0")
    story.add(3, LOADED, 2, options="OPT=0")

    assert [] == story.explained(tmp_path / "3", run=3)
    assert [(Reason.OPTION, ["options"])] == told(story.explained(tmp_path / "2", run=2))
    assert [(Reason.OPTION, ["options"])] == told(story.explained(tmp_path / "all"))


def test_a_trip_is_compared_with_what_it_has_most_in_common_with(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1, closure="a")
    story.add(1, COMPILED, 2, closure="b")
    story.add(2, COMPILED, 3, closure="a", source_stamp="(2.0, 90)")

    (entry,) = story.explained(tmp_path, run=2)

    assert [(Reason.EXCESS, ["source_stamp"])] == told([entry])
    assert entry.why.earlier is not None
    assert 0 == entry.why.earlier.seq


def test_the_same_code_on_another_host_comes_before_nearer_keys_of_other_code(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1, identity="1" * 32, cache_folders="/a", xla_flags="x", source_digest="1")
    story.add(2, COMPILED, 2, identity="2" * 32, source_digest="2")
    story.add(3, COMPILED, 3, identity="1" * 32, cache_folders="/b", source_digest="1")

    (entry,) = story.explained(tmp_path, run=3)

    assert [(Reason.ENVIRONMENT, ["xla_flags", "cache_folders"])] == told([entry])


def test_two_functions_of_one_name_in_a_process_are_not_compared(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1, identity="1" * 32, source_digest="1")
    story.add(1, COMPILED, 2, identity="2" * 32, source_digest="2")

    assert [] == story.explained(tmp_path)


def test_one_function_that_closes_over_something_else_is_compared(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1, identity="1" * 32, closure="1", line=3)
    story.add(1, COMPILED, 2, identity="2" * 32, closure="2", line=3)
    story.add(1, COMPILED, 3, identity="3" * 32, closure="3", line=9)

    assert [(Reason.SOURCE, ["closure"])] == told(story.explained(tmp_path))


def test_edited_code_is_compared_with_the_code_before(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1, identity="1" * 32, source_digest="1")
    story.add(2, COMPILED, 2, identity="2" * 32, source_digest="2")

    assert [(Reason.SOURCE, ["source_digest"])] == told(story.explained(tmp_path, run=2))


def test_trips_with_the_same_reason_are_counted_together(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1)
    for number in range(3):
        story.add(2, LOADED, 1, process=number, options="OPT=0")

    (entry,) = story.explained(tmp_path, run=2)

    assert (3, 3) == (entry.trips, entry.record.seq)


def test_a_key_that_differs_in_no_known_part_is_an_excess_miss(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1)
    story.add(2, COMPILED, 2)

    (entry,) = story.explained(tmp_path, run=2)

    assert [(Reason.EXCESS, [])] == told([entry])
    assert "no known part of the key differs" == entry.why.detail


def test_parts_that_found_no_place_of_their_own_are_compared_too(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, 1, other=json.dumps({"flag": "1", "mode": "x"}))
    story.add(2, COMPILED, 2, other=json.dumps({"flag": "2", "mode": "x"}))
    story.add(3, COMPILED, 3, other="{oops")

    assert [(Reason.OPTION, ["flag"])] == told(story.explained(tmp_path / "2", run=2))
    assert [(Reason.OPTION, ["flag", "mode"])] == told(story.explained(tmp_path / "3", run=3))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"numba": "0.68", "bytecode": "2"}, Reason.BUILD),
        ({"cpu": "generic", "options": "OPT=0"}, Reason.TARGET),
        ({"source_digest": "2", "source_stamp": "2", "options": "OPT=0"}, Reason.SOURCE),
        ({"signature": "(int64,)", "module": "2"}, Reason.SPECIALIZATION),
        ({"module": "2"}, Reason.SOURCE),
        ({"module": "2", "num_warps": "8"}, Reason.OPTION),
        ({"xla_flags": "2", "compile_options": "2"}, Reason.ENVIRONMENT),
        ({"cache_folders": "2"}, Reason.STORE_LOCATION),
        ({"something_new": "2"}, Reason.OPTION),
    ],
)
def test_what_explains_most_is_the_reason(tmp_path: Path, changes: dict[str, str], reason: Reason) -> None:
    story = Story()
    story.add(1, COMPILED, 1, identity=None, specialization=None)
    story.add(2, COMPILED, 2, identity=None, specialization=None, more=changes)

    with opened_recording(write_recording(tmp_path / "r.db", story.trips)) as connection:
        (trip,) = explain_kernel(connection, "shop.price", f"{2:032x}", "r.db").trips

    assert trip.why is not None
    assert reason is trip.why.reason
    assert set(changes) == {part.name for part in trip.why.differing}


def test_only_the_newest_are_listed(tmp_path: Path) -> None:
    story = Story()
    kernels = [f"shop.k{number}" for number in range(LISTED + 2)]
    for number, kernel in enumerate(kernels):
        story.add(1, COMPILED, number, kernel=kernel)
    for number, kernel in enumerate(kernels):
        story.add(2, COMPILED, 1000 + number, kernel=kernel, options="OPT=0")

    assert kernels[:1:-1] == [entry.kernel.kernel for entry in story.explained(tmp_path, run=2)]


def compiled_twice(path: Path, second_at_ms: int) -> Reason | None:
    """Return why a kernel was compiled that another process had begun to compile at 0 ms, for 100 ms."""
    stored: dict[str, AttributeValue] = {semconv.STORE_STORED: True, semconv.STORE_LOCATION: "/store"}
    first, second = (
        a_trip(
            Session(id=f"{number:032x}", run="1" * 32),
            0,
            "shop.price",
            at_ms,
            100,
            COMPILED,
            key=KernelCacheKey(id=1, build_id=1),
            attributes=stored,
        )
        for number, at_ms in ((1, 0), (2, second_at_ms))
    )
    with opened_recording(write_recording(path / f"{second_at_ms}.db", [first, second])) as connection:
        newest = explain_kernel(connection, "shop.price", None, "r.db").trips[0].why
    return newest.reason if newest else None


def test_two_processes_at_one_moment_are_told_from_a_store_that_lost_something(tmp_path: Path) -> None:
    assert Reason.CONCURRENT is compiled_twice(tmp_path, 99)
    assert Reason.LOST is compiled_twice(tmp_path, 101)


def test_without_a_key_what_is_known_is_compared(tmp_path: Path) -> None:
    story = Story()
    story.add(1, COMPILED, None, specialization="(float64,)", identity="1" * 32)
    story.add(1, COMPILED, None, specialization="(int64,)", identity="2" * 32)
    story.add(2, COMPILED, None, specialization="(int64,)", identity="2" * 32)
    story.add(3, COMPILED, None, specialization="(int64,)", identity="3" * 32)
    with opened_recording(write_recording(tmp_path / "r.db", story.trips)) as connection:
        explained = explain_kernel(connection, "shop.price", None, "r.db").trips

    assert [Reason.SOURCE, Reason.STORE_OFF, Reason.SPECIALIZATION, Reason.FIRST] == [
        trip.why.reason for trip in explained if trip.why
    ]


def test_what_one_of_two_records_does_not_tell_is_no_difference(tmp_path: Path) -> None:
    session = Session(id="1" * 32, run="1" * 32)
    trips = [
        a_trip(session, 0, "f", 0, 1, COMPILED, key=KernelCacheKey(id=1, build_id=1), attributes={**SAID}),
        a_trip(session, 1, "f", 100, 1, COMPILED, attributes={semconv.KEY_ABSENT_REASON: "disabled"}),
    ]
    with opened_recording(write_recording(tmp_path / "r.db", trips)) as connection:
        newest = explain_kernel(connection, "f", None, "r.db").trips[0].why

    assert newest is not None
    assert (Reason.STORE_OFF, "disabled", ()) == (newest.reason, newest.detail, newest.differing)


SAID: dict[str, AttributeValue] = {semconv.BUILD: "torch 2.15", semconv.TARGET: "cpu"}

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
        (entry,) = summarize(connection, f"{2:032x}").explained

    assert ("__main__.price", "loaded") == (entry.kernel.kernel, entry.record.outcome)
    assert [(Reason.OTHER_ARTIFACT, ["options"])] == told([entry])
    assert "source_digest" in entry.why.equal
