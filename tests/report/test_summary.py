"""What a report computes, on trips of which every answer is known."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from written_trips import write_otlp, write_recording

from otel_kernel import semconv
from otel_kernel.records import INT64_MAX, AttributeValue, Trip
from otel_kernel.report.opening import opened
from otel_kernel.report.scope import run_of
from otel_kernel.report.summary import (
    LISTED,
    Counts,
    FailedTrip,
    InternalLine,
    KernelLine,
    Layer,
    Saved,
    Summary,
    summarize,
)
from report.shop import (
    BEFORE,
    COMPILED,
    DEAD_PID,
    EARLIER,
    ENDED,
    LATEST,
    LOADED,
    START_NS,
    UNFINISHED,
    WEB,
    WORKER,
    a_trip,
    key,
    ms,
)


def no_problem(problem: object) -> None:
    raise AssertionError(problem)


def summary_of(path: Path, run: str | None = "all") -> Summary:
    with opened(path, no_problem) as recording:
        return summarize(recording.connection, run_of(recording.connection, run, str(path)))


def summary_of_trips(path: Path, *trips: Trip) -> Summary:
    return summary_of(write_recording(path / "r.db", trips))


def layer_of(summary: Summary, name: str = "numba") -> Layer:
    return next(layer for layer in summary.layers if layer.layer == name)


@pytest.fixture
def latest(tmp_path: Path) -> Summary:
    return summary_of(write_recording(tmp_path / "r.db", (*BEFORE, *LATEST)), None)


def test_own_time_leaves_out_children_of_the_same_layer_only(latest: Summary) -> None:
    numba = {line.kernel: line.own_ns for line in layer_of(latest).kernels}

    assert ms(1000 - 300 - 100 - 60 + 50) == numba["shop.price"]
    assert ms(300 - 50) == numba["shop.tax"]
    assert ms(50 + 5) == numba["shop.cents"]
    assert (KernelLine("shop.round", Counts(compiled=1), ms(100)),) == layer_of(
        latest, "numba.gufunc"
    ).kernels


def test_kernels_come_by_own_time(latest: Summary) -> None:
    times = [line.own_ns for line in layer_of(latest).kernels]

    assert sorted(times, reverse=True) == times
    assert 9 == len(times)


def test_internal_functions_are_one_line(latest: Summary) -> None:
    assert InternalLine(2, Counts(compiled=2), ms(160)) == layer_of(latest).internal
    assert layer_of(latest, "numba.gufunc").internal is None


def test_trips_are_counted_by_how_they_ended(latest: Summary) -> None:
    assert Counts(compiled=6, loaded=4, rekeyed=1, failed=1, abandoned=1, unfinished=1) == latest.counts
    assert Counts(compiled=1) == layer_of(latest, "numba.gufunc").counts
    assert 4 / 10 == layer_of(latest).counts.loaded_share
    assert (1, 2, START_NS) == (latest.runs, latest.processes, latest.started_ns)


def test_time_spent_is_the_union_in_each_process(latest: Summary) -> None:
    # Of the web process 0 to 1200, 2000 to 2100, 3000 to 3080 and 4000 to 4010; of the worker 100 to 150.
    assert ms(1200 + 100 + 80 + 10 + 50) == latest.spent_ns
    assert latest.spent_ns == layer_of(latest).spent_ns
    assert ms(100) == layer_of(latest, "numba.gufunc").spent_ns


def test_time_saved_is_known_where_a_compilation_is(latest: Summary) -> None:
    # Stock saved 700 - 400, quick nothing; strange is unknown; quick.inner is inside quick.
    assert Saved(trips=3, unknown=1, ns=ms(300)) == latest.saved
    assert 1 / 3 == latest.saved.unknown_share
    assert latest.saved == layer_of(latest).saved


def test_a_loaded_trip_inside_one_that_compiled_saved_time(tmp_path: Path) -> None:
    outer = a_trip(WEB, 1, "outer", 1000, 100, COMPILED)
    between = a_trip(WEB, 2, "between", 1000, 50, COMPILED, parent=1)
    inner = a_trip(WEB, 3, "inner", 1000, 10, LOADED, parent=2, key=key(1))
    made = a_trip(WEB, 0, "inner", 0, 40, COMPILED, key=key(1))

    assert (
        Saved(trips=1, unknown=0, ns=ms(30)) == summary_of_trips(tmp_path, made, outer, between, inner).saved
    )


def test_a_loaded_trip_anywhere_inside_a_loaded_one_is_not_counted_again(tmp_path: Path) -> None:
    made = a_trip(WEB, 0, "k", 0, 500, COMPILED, key=key(1))
    outer = a_trip(WEB, 1, "k", 1000, 100, LOADED, key=key(1), layer="numba")
    between = a_trip(WEB, 2, "between", 1000, 50, COMPILED, parent=1)
    inner = a_trip(WEB, 3, "k", 1000, 10, LOADED, parent=2, key=key(1))

    assert (
        Saved(trips=1, unknown=0, ns=ms(400)) == summary_of_trips(tmp_path, made, outer, between, inner).saved
    )


def test_a_compilation_of_another_layer_tells_nothing(tmp_path: Path) -> None:
    made = a_trip(WEB, 0, "k", 0, 500, COMPILED, key=key(1), layer="numba.gufunc")
    loaded = a_trip(WEB, 1, "k", 1000, 100, LOADED, key=key(1))
    keyless = a_trip(WEB, 2, "k", 1000, 100, LOADED)

    assert Saved(trips=2, unknown=2, ns=0) == summary_of_trips(tmp_path, made, loaded, keyless).saved


def remembering(ns: int) -> dict[str, AttributeValue]:
    return {semconv.ORIGINAL_NS: ns}


def test_without_a_compilation_the_artifact_tells_what_it_took(tmp_path: Path) -> None:
    loaded = a_trip(WEB, 0, "k", 0, 100, LOADED, key=key(1), attributes=remembering(ms(700)))
    forgetful = a_trip(WEB, 1, "k", 1000, 100, LOADED, key=key(2))

    assert (
        Saved(trips=2, unknown=1, remembered=1, ns=ms(600))
        == summary_of_trips(tmp_path, loaded, forgetful).saved
    )


def test_a_compilation_that_is_at_hand_counts_more_than_what_the_artifact_tells(tmp_path: Path) -> None:
    made = a_trip(EARLIER, 0, "k", -5000, 500, COMPILED, key=key(1))
    loaded = a_trip(WEB, 0, "k", 0, 100, LOADED, key=key(1), attributes=remembering(ms(700)))

    assert (
        Saved(trips=1, unknown=0, remembered=0, ns=ms(400)) == summary_of_trips(tmp_path, made, loaded).saved
    )


def test_a_memory_in_whole_seconds_never_makes_a_loss(tmp_path: Path) -> None:
    below_a_second = a_trip(WEB, 0, "jit(k)", 0, 100, LOADED, key=key(1), attributes=remembering(0))

    assert Saved(trips=1, unknown=0, remembered=1, ns=0) == summary_of_trips(tmp_path, below_a_second).saved


def test_a_child_that_outlives_its_parent_leaves_no_negative_time(tmp_path: Path) -> None:
    parent = a_trip(WEB, 0, "parent", 0, 100, COMPILED)
    children = [a_trip(WEB, seq, "child", 10, 80, COMPILED, parent=0) for seq in (1, 2)]

    own = {
        line.kernel: line.own_ns for line in layer_of(summary_of_trips(tmp_path, parent, *children)).kernels
    }

    assert {"child": ms(160), "parent": 0} == own


def test_failed_trips_are_listed_with_what_ended_them(latest: Summary) -> None:
    broken = ENDED[10]

    assert (
        FailedTrip(
            session=WEB.id,
            seq=10,
            pid=100,
            layer="numba",
            kernel="shop.broken",
            started_ns=broken.started_ns,
            error_type="numba.core.errors.TypingError",
            message="numba.core.errors.TypingError at /srv/shop/pricing.py:41",
        ),
    ) == latest.failed


def test_only_the_newest_failed_trips_are_listed(tmp_path: Path) -> None:
    failed = [a_trip(WEB, seq, "shop.broken", seq, 1, error_type="ValueError") for seq in range(LISTED + 5)]

    summary = summary_of_trips(tmp_path, *failed)

    assert list(range(LISTED + 4, 4, -1)) == [trip.seq for trip in summary.failed]
    assert LISTED + 5 == summary.counts.failed


def test_an_unfinished_trip_tells_its_age_and_that_its_process_is_gone(latest: Summary) -> None:
    (trip,) = latest.unfinished

    assert ("shop.slow", WORKER.id, 1, DEAD_PID) == (trip.kernel, trip.session, trip.seq, trip.pid)
    assert time.time_ns() - UNFINISHED.started_ns >= trip.age_ns > 0
    assert trip.alive is None  # written here about another process, of which only the pid is known


WRITES_A_START = """
import sys
from pathlib import Path
from otel_kernel import semconv, session
from otel_kernel.recording.writer import RecordingSink
from otel_kernel.records import Trip

trip = Trip(
    session=session.current(), seq=0, runtime="numba", layer="numba", kernel="shop.slow", started_ns=1,
    duration_ns=None,
)
RecordingSink(Path(sys.argv[1])).started(trip)
print("started", flush=True)
sys.stdin.read()
"""


def test_an_unfinished_trip_tells_whether_its_process_lives(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    with subprocess.Popen(
        [sys.executable, "-c", WRITES_A_START, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert "started\n" == program.stdout.readline()
        during = summary_of(path).unfinished
        program.communicate()
    after = summary_of(path).unfinished

    assert [(program.pid, True)] == [(trip.pid, trip.alive) for trip in during]
    assert [(program.pid, False)] == [(trip.pid, trip.alive) for trip in after]


def test_a_run_is_summed_up_by_itself_or_with_all_others(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.db", (*BEFORE, *LATEST))

    assert [4, 14, 14, 18] == [summary_of(path, run).counts.trips for run in ("1" * 32, "2", None, "all")]
    assert (2, 3) == (summary_of(path).runs, summary_of(path).processes)


def test_otlp_json_lines_give_the_same_report_as_a_recording(tmp_path: Path) -> None:
    trips = (*BEFORE, *ENDED)

    from_recording = summary_of(write_recording(tmp_path / "r.db", trips))
    from_lines = summary_of(write_otlp(tmp_path / "spans.jsonl", trips, batch=3))

    assert from_recording == from_lines


def test_nothing_gives_an_empty_report(tmp_path: Path) -> None:
    summary = summary_of(write_otlp(tmp_path / "spans.jsonl", ()))

    assert (0, 0, None, 0, ()) == (
        summary.counts.trips,
        summary.processes,
        summary.started_ns,
        summary.spent_ns,
        summary.layers,
    )


def test_times_beyond_64_bits_do_not_break_a_report(tmp_path: Path) -> None:
    longest = replace(ENDED[0], duration_ns=INT64_MAX)
    trips = [replace(longest, seq=seq, started_ns=seq) for seq in range(3)]

    summary = summary_of_trips(tmp_path, *trips)

    assert INT64_MAX == layer_of(summary).kernels[0].own_ns
    assert INT64_MAX == summary.spent_ns
