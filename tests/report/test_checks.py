"""Checks, on trips of which every answer is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from written_trips import write_recording

from otel_kernel import semconv
from otel_kernel.inputs import InputError
from otel_kernel.records import CompilationOutcome, Session, Trip
from otel_kernel.report.checks import Check, Checks, Expected, check_run
from otel_kernel.report.late import LateKernel
from otel_kernel.report.opening import opened_recording
from otel_kernel.report.summary import summarize
from report.shop import COMPILED, LOADED, REKEYED, WEB, WORKER, a_trip, ms

NOTHING_LATE = Expected(no_compile_after="serving")


def checks_of(folder: Path, trips: list[Trip], expected: Expected, *layers: str) -> Checks:
    path = write_recording(folder / "r.db", trips)
    with opened_recording(path) as connection:
        return check_run(connection, None, "r.db", expected, layers)


def check_of(folder: Path, trips: list[Trip], expected: Expected, *layers: str) -> Check:
    (check,) = checks_of(folder, trips, expected, *layers).checks
    return check


def in_phase(
    phase: str | None,
    seq: int,
    outcome: CompilationOutcome | None = COMPILED,
    *,
    session: Session = WEB,
    kernel: str = "k",
    duration_ms: int | None = 10,
    error_type: str | None = None,
) -> Trip:
    """Return a trip in a phase that starts `seq` * 100 ms after the others."""
    trip = a_trip(session, seq, kernel, seq * 100, duration_ms, outcome, error_type=error_type)
    return trip if phase is None else replace(trip, attributes={**trip.attributes, semconv.PHASE: phase})


@pytest.mark.parametrize(
    ("late", "counts"),
    [
        (in_phase("serving", 2), (1, 0, 0)),
        (in_phase("serving", 2, None, error_type="ValueError"), (0, 1, 0)),
        (in_phase("serving", 2, None, duration_ms=None), (0, 0, 1)),
    ],
    ids=["compiled", "failed", "unfinished"],
)
def test_what_compiles_or_should_have_while_serving_fails(
    tmp_path: Path, late: Trip, counts: tuple[int, int, int]
) -> None:
    check = check_of(tmp_path, [in_phase("startup", 0), in_phase("serving", 1, LOADED), late], NOTHING_LATE)

    assert (False, 1, "1 trip compiled") == (check.holds, check.found, check.reason)
    assert (LateKernel("numba", "k", False, *counts, own_ns=0 if counts[2] else ms(10)),) == check.kernels


def test_what_is_loaded_or_rekeyed_while_serving_does_not(tmp_path: Path) -> None:
    trips = [in_phase("startup", 0), in_phase("serving", 1, LOADED), in_phase("serving", 2, REKEYED)]

    check = check_of(tmp_path, trips, NOTHING_LATE)

    assert (True, 0, "nothing compiled; the trips are of phase serving, startup") == (
        check.holds,
        check.found,
        check.reason,
    )


def test_a_later_phase_is_after_serving_too(tmp_path: Path) -> None:
    check = check_of(tmp_path, [in_phase("serving", 0, LOADED), in_phase("draining", 1)], NOTHING_LATE)

    assert (False, 1) == (check.holds, check.found)


def test_each_process_has_its_own_phases(tmp_path: Path) -> None:
    trips = [in_phase("serving", 0, LOADED), in_phase("startup", 5, session=WORKER)]

    assert check_of(tmp_path, trips, NOTHING_LATE).holds


def test_whether_anything_compiled_while_serving_cannot_be_told_without_phases(tmp_path: Path) -> None:
    check = check_of(tmp_path, [in_phase(None, 0)], NOTHING_LATE)

    assert (None, 0) == (check.holds, check.found)
    assert check.reason.startswith("no trip tells its phase: set OTEL_KERNEL_SERVING_AFTER, or call ")


def test_a_process_that_tells_no_phase_leaves_the_answer_open(tmp_path: Path) -> None:
    check = check_of(tmp_path, [in_phase("startup", 0), in_phase(None, 0, session=WORKER)], NOTHING_LATE)

    assert check.holds is None
    assert check.reason.startswith("1 process compiled 1 kernel and told no phase: ")


def test_trips_before_the_first_phase_are_before_it(tmp_path: Path) -> None:
    assert check_of(tmp_path, [in_phase(None, 0), in_phase("serving", 1, LOADED)], NOTHING_LATE).holds


def test_compile_time_is_that_of_the_process_that_took_longest(tmp_path: Path) -> None:
    trips = [
        a_trip(WEB, 0, "outer", 0, 1000, COMPILED),
        a_trip(WEB, 1, "inner", 100, 200, COMPILED, parent=0),
        a_trip(WEB, 2, "again", 2000, 500, None, error_type="ValueError"),
        a_trip(WEB, 3, "loaded", 3000, 900, LOADED),
        a_trip(WORKER, 0, "outer", 0, 1400, COMPILED),
    ]
    budget = [check_of(tmp_path, trips, Expected(max_compile_seconds=seconds)) for seconds in (1.5, 1.49)]

    assert [True, False] == [check.holds for check in budget]
    assert {1.5} == {check.found for check in budget}
    assert "pid 100 compiled for 1.50 s, the longest of 2 processes" == budget[0].reason


def test_a_trip_that_never_ended_took_at_least_until_the_last_that_is_known(tmp_path: Path) -> None:
    trips = [a_trip(WEB, 0, "hangs", 0, None), a_trip(WORKER, 0, "k", 4000, 1000, COMPILED)]

    assert 5.0 == check_of(tmp_path, trips, Expected(max_compile_seconds=9)).found


def test_the_share_of_loaded_records_is_that_of_the_worst_layer(tmp_path: Path) -> None:
    trips = [
        a_trip(WEB, 0, "k", 0, 1, COMPILED, layer="triton"),
        *(a_trip(WEB, seq, "k", seq, 1, LOADED, layer="triton") for seq in (1, 2, 3)),
        a_trip(WEB, 4, "k", 4, 1, LOADED, layer="jax"),
        a_trip(WEB, 5, "k", 5, 1, error_type="ValueError", layer="jax"),
    ]

    def check(limit: float, *layers: str) -> tuple[bool | None, float | None, str]:
        found = check_of(tmp_path, trips, Expected(min_load_share=limit), *layers)
        return found.holds, found.found, found.reason

    assert (True, 0.75, "75% of triton loaded, the least of 2 layers") == check(0.75)
    assert (False, 0.75, "75% of triton loaded, the least of 2 layers") == check(0.76)
    assert (True, 1.0, "100% of jax loaded") == check(1, "jax")


def test_a_share_of_nothing_cannot_be_told(tmp_path: Path) -> None:
    check = check_of(tmp_path, [in_phase(None, 0, None, error_type="E")], Expected(min_load_share=0))

    assert (None, None) == (check.holds, check.found)


def test_a_layer_without_trips_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^no trip of layer tritn in r\.db: its layers are numba$"):
        checks_of(tmp_path, [in_phase(None, 0)], NOTHING_LATE, "tritn")


def test_one_that_fails_decides_and_one_that_cannot_be_told_is_no_success(tmp_path: Path) -> None:
    trips = [in_phase(None, 0)]

    def holds(seconds: float) -> bool | None:
        return checks_of(tmp_path, trips, Expected("serving", max_compile_seconds=seconds)).holds

    assert (False, None) == (holds(0), holds(9))


def test_a_summary_tells_what_compiled_while_serving(tmp_path: Path) -> None:
    trips = [in_phase("startup", 0), in_phase("serving", 1), in_phase("serving", 2, LOADED, kernel="j")]
    with opened_recording(write_recording(tmp_path / "r.db", trips)) as connection:
        assert (LateKernel("numba", "k", False, 1, 0, 0, ms(10)),) == summarize(connection).serving
