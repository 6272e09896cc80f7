"""What ranks did with the same kernels, on trips of which every answer is known."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_schemas import errors
from strategies import trips
from written_trips import write_otlp, write_recording

from otel_kernel import semconv
from otel_kernel.inputs import InputError
from otel_kernel.records import AttributeValue, CompilationOutcome, Session, Trip
from otel_kernel.report.opening import opened
from otel_kernel.report.ranks import Duplicate, HoldUp, Ranks, by_rank
from otel_kernel.report.ranks_json import ranks_json
from otel_kernel.report.render_ranks import print_ranks
from report.shop import COMPILED, LATEST, LOADED, REKEYED, WEB, a_trip, key, ms

RUN = "2" * 32
SESSIONS = [Session(id=f"{number:032x}", run=RUN) for number in range(8)]


def of_rank(
    rank: int,
    seq: int,
    kernel: str,
    at_ms: int,
    duration_ms: int | None,
    outcome: CompilationOutcome | None = COMPILED,
    *,
    number: int | None = None,
    specialization: str | None = None,
    identity: str | None = None,
) -> Trip:
    """Return a trip of a rank, with a key of that number."""
    trip = a_trip(
        SESSIONS[rank],
        seq,
        kernel,
        at_ms,
        duration_ms,
        outcome,
        key=None if number is None else key(number),
    )
    here: dict[str, AttributeValue] = {semconv.RANK: rank, semconv.WORLD_SIZE: 8}
    if specialization is not None:
        here[semconv.SPECIALIZATION] = specialization
    if identity is not None:
        here[semconv.IDENTITY] = identity
    return replace(trip, attributes={**trip.attributes, **here})


def ranks_of(path: Path, run: str | None = None) -> Ranks:
    def problem(problem: object) -> None:
        raise AssertionError(problem)

    with opened(path, problem) as recording:
        return by_rank(recording.connection, run, "r.db")


def ranks_of_trips(folder: Path, *trips: Trip) -> Ranks:
    return ranks_of(write_recording(folder / "r.db", trips))


def waits(ranks: Ranks) -> list[tuple[int, int]]:
    """Return, rank by rank, for how many ms it waited and held others up."""
    return [(each.waited_ns // ms(1), each.held_up_ns // ms(1)) for each in ranks.ranks]


def test_ranks_that_have_a_kernel_wait_for_the_last(tmp_path: Path) -> None:
    ranks = ranks_of_trips(
        tmp_path,
        of_rank(0, 0, "k", 0, 100),
        of_rank(1, 0, "k", 0, 300),
        of_rank(2, 0, "k", 200, 700),
    )

    assert [(700, 0), (600, 0), (0, 700)] == waits(ranks)
    assert ranks.slowest is not None
    assert 2 == ranks.slowest.rank
    assert (HoldUp(2, "numba", "k", None, "compiled", (0, 1), ms(700)),) == ranks.hold_ups


def test_a_rank_that_compiles_something_else_does_not_wait(tmp_path: Path) -> None:
    ranks = ranks_of_trips(
        tmp_path,
        of_rank(0, 0, "k", 0, 100),
        of_rank(0, 1, "other", 150, 300),
        of_rank(1, 0, "k", 0, 500),
    )

    assert [(50 + 50, 0), (0, 100)] == waits(ranks)


def test_a_rank_that_is_late_for_another_reason_holds_up_only_while_it_compiles(tmp_path: Path) -> None:
    ranks = ranks_of_trips(tmp_path, of_rank(0, 0, "k", 0, 100), of_rank(1, 0, "k", 5000, 10, LOADED))

    assert [(10, 0), (0, 10)] == waits(ranks)


def test_a_rank_that_loads_what_another_is_compiling_waits_for_it(tmp_path: Path) -> None:
    ranks = ranks_of_trips(
        tmp_path, of_rank(0, 0, "k", 0, 1000, number=1), of_rank(1, 0, "k", 100, 950, LOADED, number=1)
    )

    # Rank 1 ends 50 ms after rank 0, which has it by then.
    assert [(50, 900), (900, 50)] == waits(ranks)
    assert 0 == ranks.duplicate_kernels


def test_waiting_for_nested_kernels_is_counted_once(tmp_path: Path) -> None:
    ranks = ranks_of_trips(
        tmp_path,
        of_rank(0, 0, "outer", 0, 100),
        of_rank(0, 1, "inner", 10, 50),
        of_rank(1, 0, "outer", 0, 500),
        of_rank(1, 1, "inner", 100, 300),
    )

    assert [(400, 0), (0, 400)] == waits(ranks)
    assert [400, 300] == [each.held_up_ns // ms(1) for each in ranks.hold_ups]


def test_a_kernel_that_ranks_compiled_is_a_duplicate(tmp_path: Path) -> None:
    ranks = ranks_of_trips(
        tmp_path,
        of_rank(0, 0, "k", 0, 100, number=1),
        of_rank(1, 0, "k", 50, 200, number=1),
        of_rank(2, 0, "k", 60, 300, number=1),
        of_rank(3, 0, "k", 900, 10, LOADED, number=1),
        of_rank(4, 0, "k", 900, 10, REKEYED, number=1),
    )

    assert (Duplicate("numba", "k", None, (0, 1, 2), (3, 4), True, True, ms(500)),) == ranks.duplicates
    assert (1, 1) == (ranks.shared_kernels, ranks.duplicate_kernels)


@pytest.mark.parametrize(
    ("second", "third", "expected"),
    [
        ({"at_ms": 50, "number": 2}, {"at_ms": 900, "number": 1}, (True, False)),
        ({"at_ms": 100, "number": 1}, {"at_ms": 200, "number": 1}, (False, True)),
        ({"at_ms": 100, "number": 1}, {"at_ms": 200}, (False, None)),
    ],
)
def test_duplicates_tell_overlap_and_keys(
    tmp_path: Path, second: dict[str, int], third: dict[str, int], expected: tuple[bool, bool | None]
) -> None:
    def compiled(rank: int, at_ms: int, number: int | None = None) -> Trip:
        return of_rank(rank, 0, "k", at_ms, 100, number=number)

    (found,) = ranks_of_trips(
        tmp_path, compiled(0, 0, 1), compiled(1, **second), compiled(2, **third)
    ).duplicates

    assert expected == (found.overlapping, found.same_key)


def test_two_instances_of_a_kernel_are_no_duplicate(tmp_path: Path) -> None:
    ranks = ranks_of_trips(
        tmp_path,
        of_rank(0, 0, "k", 0, 100, specialization="(int64,)"),
        of_rank(1, 0, "k", 0, 100, specialization="(float64,)"),
        of_rank(0, 1, "j", 0, 100, identity="1" * 32),
        of_rank(1, 1, "j", 0, 100, identity="2" * 32),
    )

    assert (0, 0) == (ranks.shared_kernels, ranks.duplicate_kernels)


def test_a_rank_that_compiles_again_is_no_duplicate(tmp_path: Path) -> None:
    ranks = ranks_of_trips(tmp_path, of_rank(0, 0, "k", 0, 100), of_rank(0, 1, "k", 200, 100))

    assert (0, None) == (ranks.shared_kernels, ranks.slowest)


def test_a_rank_may_have_several_processes(tmp_path: Path) -> None:
    helper = replace(of_rank(1, 0, "j", 40, 100), session=SESSIONS[7])
    ranks = ranks_of_trips(tmp_path, of_rank(1, 0, "k", 0, 100, LOADED), helper)

    (rank,) = ranks.ranks

    assert (1, 8, 2, ms(140)) == (rank.rank, rank.world_size, rank.processes, rank.spent_ns)
    assert (1, 1) == (rank.counts.loaded, rank.counts.compiled)


def test_processes_without_a_rank_are_counted_apart(tmp_path: Path) -> None:
    ranks = ranks_of_trips(tmp_path, of_rank(0, 0, "k", 0, 1), a_trip(WEB, 0, "k", 0, 1, COMPILED))

    assert (1, 1, 0) == (ranks.unranked_processes, ranks.unranked.compiled, ranks.shared_kernels)


def test_one_rank_in_two_runs_is_an_error(tmp_path: Path) -> None:
    restarted = replace(of_rank(0, 0, "k", 0, 1), session=Session(id="c" * 32, run="1" * 32))
    path = write_recording(tmp_path / "r.db", [of_rank(0, 0, "k", 0, 1), restarted])

    with pytest.raises(
        InputError, match=r"^rank 0 is in several runs of r\.db, as \S+ and \S+: name one with --run$"
    ):
        ranks_of(path)
    assert 1 == len(ranks_of(path, RUN).ranks)


def test_spans_give_the_same_as_a_recording(tmp_path: Path) -> None:
    trips = [of_rank(0, 0, "k", 0, 100), of_rank(1, 0, "k", 50, 300), of_rank(2, 0, "k", 0, 70, LOADED)]

    assert ranks_of_trips(tmp_path, *trips) == ranks_of(write_otlp(tmp_path / "spans.jsonl", trips))


SEEN = (
    of_rank(0, 0, "shop.price", 0, 1000, number=1, specialization="(float64,)"),
    of_rank(1, 0, "shop.price", 100, 2000, number=1, specialization="(float64,)"),
    of_rank(2, 0, "shop.price", 100, 950, LOADED, number=1, specialization="(float64,)"),
    of_rank(3, 0, "shop.price", 2500, 20, LOADED, number=1, specialization="(float64,)"),
    of_rank(3, 1, "shop.slow", 3000, None, None),
    a_trip(WEB, 0, "shop.web", 0, 1, COMPILED),
)

TEXT = """\
All runs, 4 ranks of 8, the others told of no trip
  rank    spent   waited  held up  trips
     0   1.00 s  20.0 ms   900 ms  1 compiled
     1   2.00 s  20.0 ms   950 ms  1 compiled
     2   950 ms   970 ms     0 ns  1 loaded
     3  20.0 ms     0 ns  20.0 ms  1 loaded, 1 unfinished

Rank 1 held the others up for 950 ms.

Waited for
  shop.price (float64,)
    rank 2 waits 950 ms for rank 1: compiled
  shop.price (float64,)
    rank 2 waits 900 ms for rank 0: compiled
  shop.price (float64,)
    ranks 0-2 wait 20.0 ms for rank 3: loaded

Compiled on several ranks (1 of 1 shared kernel)
  shop.price (float64,)
    2.00 s of duplicate work on ranks 0-1 at the same time, under one key; not
    compiled on ranks 2-3

Unfinished
  shop.slow
    rank 3, started AGE ago: nothing tells whether it runs

Not compared: 1 trip of 1 process without a rank.
"""


def printed(ranks: Ranks) -> str:
    output = io.StringIO()
    print_ranks(ranks, output)
    return output.getvalue()


def test_ranks_read_like_this(tmp_path: Path) -> None:
    lines = printed(ranks_of_trips(tmp_path, *SEEN)).splitlines(keepends=True)

    assert TEXT == "".join(
        f"{line.partition('started')[0]}started AGE ago{line.partition('ago')[2]}"
        if "started" in line
        else line
        for line in lines
    )


def test_no_rank_and_no_waiting_are_said(tmp_path: Path) -> None:
    assert (
        "All runs: no trip tells a rank.\n\nNot compared: 14 trips of 2 processes without a rank.\n"
        == printed(ranks_of_trips(tmp_path, *LATEST))
    )
    assert "\nNo rank waited for another.\n" in printed(
        ranks_of(write_recording(tmp_path / "one.db", SEEN[:1]))
    )


def as_json(ranks: Ranks) -> Any:
    nothing_left_out: dict[str, Any] = {"problems": 0, "duplicates": 0, "other_spans": 0, "other_records": {}}
    return {**json.loads(json.dumps(ranks_json(ranks))), **nothing_left_out}


def test_json_is_as_its_schema_says(tmp_path: Path) -> None:
    data = as_json(ranks_of_trips(tmp_path, *SEEN))

    assert [] == errors("ranks", data)
    assert (1, 4, 3, 1, 1) == (
        data["slowest"],
        *(len(data[name]) for name in ("ranks", "hold_ups", "duplicate_compilations", "unfinished_trips")),
    )


def with_ranks(drawn: Iterable[Trip]) -> list[Trip]:
    return [
        replace(each, attributes={**each.attributes, semconv.RANK: number % 3})
        for number, each in enumerate(drawn)
    ]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=st.lists(trips(), max_size=6, unique_by=lambda trip: trip.session.id))
def test_json_of_any_trips_is_as_its_schema_says(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Trip]
) -> None:
    one_run = [replace(each, session=replace(each.session, run=RUN)) for each in with_ranks(drawn)]

    ranks = ranks_of(write_recording(tmp_path_factory.mktemp("drawn") / "r.db", [*SEEN[:3], *one_run]))

    assert [] == errors("ranks", as_json(ranks))
