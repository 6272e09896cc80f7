"""Two runs are compared instance by instance, and what was compiled again is explained."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_schemas import errors
from strategies import trips
from written_trips import write_recording

from otel_kernel import semconv
from otel_kernel.records import AttributeValue, CompilationOutcome, KernelCacheKey, Session, Trip
from otel_kernel.report.components import Kind, Part
from otel_kernel.report.console import PLAIN_WIDTH
from otel_kernel.report.difference import Change, Difference, Entry, Threshold, compare
from otel_kernel.report.difference_json import difference_json
from otel_kernel.report.instances import read_side
from otel_kernel.report.opening import opened_recording
from otel_kernel.report.render_difference import SHOWN, print_difference
from otel_kernel.report.why import Reason, Why
from report.shop import COMPILED, INTERNAL, LOADED, REKEYED, a_trip, key

BEFORE: Final = Session(id="b" * 32, run="1" * 32)
AFTER: Final = Session(id="a" * 32, run="2" * 32)
THRESHOLD: Final = Threshold(10_000_000, 0.25)
STORED: Final[Mapping[str, AttributeValue]] = {semconv.STORE_STORED: True, semconv.STORE_LOCATION: "/store"}
NOTHING_LEFT_OUT: Final[dict[str, Any]] = {
    "problems": 0,
    "duplicates": 0,
    "other_spans": 0,
    "other_records": {},
}


class TwoRuns:
    """Trips of two runs, each at a time of its own."""

    def __init__(self) -> None:
        self.trips: list[Trip] = []

    def add(
        self,
        session: Session,
        duration_ms: int = 100,
        outcome: CompilationOutcome | None = COMPILED,
        *,
        kernel: str = "shop.price",
        identity: str | None = None,
        specialization: str | None = None,
        layer: str = "numba",
        parent: int | None = None,
        key: KernelCacheKey | None = None,
        error_type: str | None = None,
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> None:
        named = {semconv.IDENTITY: identity, semconv.SPECIALIZATION: specialization}
        self.trips.append(
            a_trip(
                session,
                len(self.trips),
                kernel,
                len(self.trips) * 1000,
                duration_ms,
                outcome,
                parent=parent,
                layer=layer,
                key=key,
                error_type=error_type,
                attributes={
                    **{name: value for name, value in named.items() if value is not None},
                    **(attributes or {}),
                },
            )
        )

    def difference(self, path: Path, threshold: Threshold = THRESHOLD) -> Difference:
        path.mkdir(exist_ok=True)
        return difference_in(write_recording(path / "r.db", self.trips), threshold)


def difference_in(path: Path, threshold: Threshold = THRESHOLD) -> Difference:
    with opened_recording(path) as connection:
        before, after = (read_side(connection, "r.db", session.run) for session in (BEFORE, AFTER))
        return compare(before, after, threshold)


def changes(difference: Difference) -> list[tuple[str, Change | None]]:
    return [(entry.kernel.kernel, entry.change) for entry in difference.entries]


def the_entry(difference: Difference) -> Entry:
    (entry,) = difference.entries
    return entry


def the_why(runs: TwoRuns, path: Path) -> Why | None:
    """Return why the one kernel was compiled, without the record that it was compared with."""
    return without_earlier(the_entry(runs.difference(path)).why)


def without_earlier(why: Why | None) -> Why | None:
    return None if why is None else replace(why, earlier=None)


def printed(difference: Difference) -> str:
    output = io.StringIO()
    print_difference(difference, output)
    return output.getvalue()


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ([], [(100, COMPILED)], Change.NEW),
        ([(100, COMPILED)], [], Change.GONE),
        ([(100, LOADED)], [(100, COMPILED)], Change.OUTCOME),
        ([(100, COMPILED)], [(100, REKEYED)], Change.OUTCOME),
        ([(100, COMPILED), (100, LOADED)], [(100, LOADED)], Change.OUTCOME),
        ([(100, LOADED)], [(125, LOADED)], Change.SLOWER),
        ([(100, LOADED)], [(75, LOADED)], Change.FASTER),
        ([(100, LOADED), (200, LOADED)], [(190, LOADED)], Change.SLOWER),
        ([(100, LOADED)], [(100, LOADED), (110, LOADED)], Change.TRIPS),
        ([(100, LOADED), (100, LOADED)], [(100, LOADED)], Change.TRIPS),
        ([(100, LOADED)], [(124, LOADED)], None),
        ([(10, LOADED)], [(19, LOADED)], None),
        ([(1, LOADED)], [(1, LOADED), (1, LOADED)], None),
    ],
)
def test_an_instance_differs_in_one_way(
    tmp_path: Path,
    before: Sequence[tuple[int, CompilationOutcome]],
    after: Sequence[tuple[int, CompilationOutcome]],
    change: Change | None,
) -> None:
    runs = TwoRuns()
    for session, durations in ((BEFORE, before), (AFTER, after)):
        for duration_ms, outcome in durations:
            runs.add(session, duration_ms, outcome)
    difference = runs.difference(tmp_path)

    assert ([] if change is None else [("shop.price", change)]) == changes(difference)
    assert (change is None) is difference.is_none


def test_the_threshold_is_the_callers(tmp_path: Path) -> None:
    runs = TwoRuns()
    runs.add(BEFORE, 100, LOADED)
    runs.add(AFTER, 120, LOADED)

    assert [] == changes(runs.difference(tmp_path, Threshold(21_000_000, 0.1)))
    assert [] == changes(runs.difference(tmp_path, Threshold(0, 0.21)))
    assert [("shop.price", Change.SLOWER)] == changes(runs.difference(tmp_path, Threshold(20_000_000, 0.2)))


def test_without_a_threshold_equal_times_are_equal(tmp_path: Path) -> None:
    runs = TwoRuns()
    runs.add(BEFORE, 100, LOADED)
    runs.add(AFTER, 100, LOADED)

    assert [] == changes(runs.difference(tmp_path, Threshold(0, 0)))


def test_times_are_own_times_of_a_layer(tmp_path: Path) -> None:
    runs = TwoRuns()
    runs.add(BEFORE, 500, LOADED)
    runs.add(BEFORE, 400, LOADED, kernel="shop.tax", parent=0)
    runs.add(AFTER, 100, LOADED)
    runs.add(AFTER, 400, LOADED, kernel="shop.tax")

    assert [] == changes(runs.difference(tmp_path))


def test_instances_are_matched_by_identity_and_else_by_specialization(tmp_path: Path) -> None:
    runs = TwoRuns()
    runs.add(BEFORE, 100, LOADED, identity="1" * 32, specialization="(float64,)")
    runs.add(BEFORE, 200, LOADED, identity="2" * 32, specialization="(float64,)")
    runs.add(BEFORE, 300, LOADED, specialization="(int64,)")
    runs.add(AFTER, 101, LOADED, identity="1" * 32, specialization="float64[:]")  # written in another way
    runs.add(AFTER, 400, LOADED, identity="3" * 32, specialization="(float64,)")  # other code
    runs.add(AFTER, 301, LOADED, identity="4" * 32, specialization="(int64,)")
    runs.add(AFTER, 50, LOADED, specialization="(int8,)")
    entries = runs.difference(tmp_path).entries

    assert [(Change.SLOWER, "(float64,)"), (Change.NEW, "(int8,)")] == [
        (entry.change, entry.instance.specialization) for entry in entries
    ]
    assert "3" * 32 == entries[0].instance.identity


def test_one_kernel_in_two_layers_is_two(tmp_path: Path) -> None:
    runs = TwoRuns()
    runs.add(BEFORE, 100, LOADED)
    runs.add(AFTER, 100, LOADED, layer="numba.ufunc")

    assert {("numba", Change.GONE), ("numba.ufunc", Change.NEW)} == {
        (entry.kernel.layer, entry.change) for entry in runs.difference(tmp_path).entries
    }


def test_failures_that_are_in_one_run_only_are_told(tmp_path: Path) -> None:
    runs = TwoRuns()
    for session, kernel in (
        (BEFORE, "shop.old"),
        (BEFORE, "shop.both"),
        (AFTER, "shop.both"),
        (AFTER, "shop.new"),
    ):
        runs.add(session, outcome=None, kernel=kernel, error_type="ValueError")
    difference = runs.difference(tmp_path)

    assert [("shop.new", True, 1), ("shop.old", False, 1)] == [
        (failure.kernel.kernel, failure.is_new, failure.failed.trips) for failure in difference.failures
    ]
    assert not difference.is_none
    assert (
        "\nFails now (1)\n  shop.new\n    ValueError (1 trip)\n\nFails no more (1)\n  shop.old\n"
        in printed(difference)
    )


def components(**changed: str) -> dict[str, AttributeValue]:
    parts = {"options": "OPT=3", "signature": "(float64,)", "source_stamp": "1", **changed}
    return {semconv.KEY_COMPONENT + name: value for name, value in parts.items()}


def test_another_key_is_compared_with_the_nearest_one_before(tmp_path: Path) -> None:
    runs = TwoRuns()
    runs.add(BEFORE, key=key(1), attributes=components(options="OPT=0", source_stamp="0"))
    runs.add(BEFORE, key=key(2), attributes=components())
    runs.add(AFTER, key=key(3), attributes=components(options="OPT=1", device="cuda:0"))

    assert Why(
        Reason.OPTION,
        differing=(
            Part("device", Kind.OPTION, None, "cuda:0"),
            Part("options", Kind.OPTION, "OPT=3", "OPT=1"),
        ),
        equal=("signature", "source_stamp"),
    ) == the_why(runs, tmp_path)


def test_without_a_key_the_runtime_says_why(tmp_path: Path) -> None:
    runs = TwoRuns()
    runs.add(BEFORE)
    runs.add(AFTER, attributes={semconv.KEY_ABSENT_REASON: "disabled"})

    assert Why(Reason.STORE_OFF, "disabled") == the_why(runs, tmp_path)


def test_what_had_no_key_before_was_never_stored(tmp_path: Path) -> None:
    runs = TwoRuns()
    runs.add(BEFORE, attributes={semconv.KEY_ABSENT_REASON: "bypassed"})
    runs.add(AFTER, key=key(1))

    assert Why(Reason.NEVER_STORED, "bypassed") == the_why(runs, tmp_path)


def test_what_the_store_did_not_take_was_never_stored(tmp_path: Path) -> None:
    runs = TwoRuns()
    refused: dict[str, AttributeValue] = {
        semconv.STORE_STORED: False,
        semconv.STORE_REASON: "compiled in less than 1 s",
        semconv.STORE_LOCATION: "/store",
    }
    runs.add(BEFORE, key=key(1), attributes=refused)
    runs.add(AFTER, key=key(1), attributes=refused)

    assert Why(Reason.NEVER_STORED, "compiled in less than 1 s") == the_why(runs, tmp_path)


@pytest.mark.parametrize(
    ("outcome", "attributes"), [(COMPILED, STORED), (LOADED, {semconv.STORE_LOCATION: "/store"})]
)
def test_what_the_store_held_before_is_lost(
    tmp_path: Path, outcome: CompilationOutcome, attributes: Mapping[str, AttributeValue]
) -> None:
    runs = TwoRuns()
    runs.add(BEFORE, outcome=outcome, key=key(1), attributes=attributes)
    runs.add(AFTER, key=key(1), attributes=STORED)

    assert Why(Reason.LOST, "/store") == the_why(runs, tmp_path)


def test_another_place_is_another_store(tmp_path: Path) -> None:
    runs = TwoRuns()
    runs.add(BEFORE, key=key(1), attributes=STORED)
    runs.add(AFTER, key=key(1), attributes={**STORED, semconv.STORE_LOCATION: "/tmp/store"})

    assert Why(Reason.STORE_LOCATION, "/store before, /tmp/store now") == the_why(runs, tmp_path)


def test_the_same_place_on_another_host_is_another_store(tmp_path: Path) -> None:
    runs = TwoRuns()
    runs.add(BEFORE, key=key(1), attributes=STORED)
    runs.add(AFTER, key=key(1), attributes=STORED)
    path = write_recording(tmp_path / "r.db", runs.trips)
    with closing(sqlite3.connect(path)) as connection, connection:
        for session, host in ((BEFORE, "gpu-1"), (AFTER, "gpu-2")):
            connection.execute("UPDATE sessions SET host = ? WHERE id = ?", (host, session.id))

    assert Why(Reason.STORE_LOCATION, "on host gpu-1 before, on gpu-2 now") == without_earlier(
        the_entry(difference_in(path)).why
    )


def test_a_damaged_entry_is_told(tmp_path: Path) -> None:
    runs = TwoRuns()
    runs.add(BEFORE, outcome=LOADED, key=key(1), attributes=STORED)
    runs.add(AFTER, key=key(1), attributes={**STORED, semconv.STORE_REJECTED: "UnpicklingError"})

    assert Why(Reason.DAMAGED, "UnpicklingError") == the_why(runs, tmp_path)


def test_without_word_of_the_store_the_reason_is_unknown(tmp_path: Path) -> None:
    runs = TwoRuns()
    runs.add(BEFORE, key=key(1))
    runs.add(AFTER, key=key(1))

    assert Why(Reason.UNKNOWN) == the_why(runs, tmp_path)


def test_the_first_compilation_is_explained_and_a_load_is_not(tmp_path: Path) -> None:
    runs = TwoRuns()
    runs.add(BEFORE, outcome=LOADED, key=key(1), attributes={**components(), **STORED})
    runs.add(AFTER, outcome=LOADED, key=key(1), attributes=components())
    runs.add(AFTER, key=key(2), attributes=components(options="OPT=0"))
    runs.add(AFTER, key=key(1), attributes={**components(), **STORED})
    explained = the_why(runs, tmp_path)

    assert explained is not None
    assert (Part("options", Kind.OPTION, "OPT=3", "OPT=0"),) == explained.differing

    loaded = TwoRuns()
    loaded.add(BEFORE, key=key(1))
    loaded.add(AFTER, outcome=LOADED, key=key(1))

    assert the_why(loaded, tmp_path / "loaded") is None


def test_instances_of_one_kernel_are_explained_each_by_its_own(tmp_path: Path) -> None:
    runs = TwoRuns()
    for number, specialization in enumerate(("(float64,)", "(int64,)")):
        runs.add(BEFORE, key=key(number), specialization=specialization, attributes=STORED)
    runs.add(AFTER, key=key(0), specialization="(float64,)", attributes=STORED)
    runs.add(AFTER, key=key(5), specialization="(int64,)", attributes=STORED)

    assert {"(float64,)": Reason.LOST, "(int64,)": Reason.EXCESS} == {
        entry.instance.specialization: entry.why.reason
        for entry in runs.difference(tmp_path).entries
        if entry.why
    }


def shop() -> TwoRuns:
    runs = TwoRuns()
    runs.add(BEFORE, 20, LOADED, kernel="shop.price", key=key(1), attributes={**components(), **STORED})
    runs.add(BEFORE, 300, kernel="shop.tax", specialization="(float64,)", key=key(2), attributes=STORED)
    runs.add(BEFORE, 50, LOADED, kernel="shop.stock")
    runs.add(BEFORE, 40, kernel="shop.old")
    runs.add(BEFORE, 100, kernel="shop.round", layer="numba.ufunc")
    runs.add(AFTER, 900, kernel="shop.price", key=key(3), attributes=components(source_stamp="2"))
    runs.add(AFTER, 450, kernel="shop.tax", specialization="(float64,)", key=key(2), attributes=STORED)
    for _ in range(3):
        runs.add(AFTER, 50, LOADED, kernel="shop.stock")
    runs.add(AFTER, 30, kernel="shop.new")
    runs.add(AFTER, 10, kernel="numba.np.dot", attributes=INTERNAL)
    runs.add(
        AFTER,
        60,
        kernel="shop.round",
        layer="numba.ufunc",
        attributes={semconv.KEY_ABSENT_REASON: "disabled"},
    )
    return runs


def test_a_difference_reads_like_this(tmp_path: Path) -> None:
    assert """\
Before: run 11111111111111111111111111111111 of r.db
  2023-11-14 22:13:20 UTC, 1 process, 510 ms spent
  5 trips: 3 compiled, 2 loaded
After: run 22222222222222222222222222222222 of r.db
  2023-11-14 22:13:25 UTC, 1 process, 1.60 s spent
  8 trips: 5 compiled, 3 loaded

Other outcome (1)
  shop.price
    1 loaded in 20.0 ms -> 1 compiled in 900 ms
    nothing has changed: source stamp (1 -> 2); only the time stamp of the
    source differs; 2 parts equal

Slower (1)
  shop.tax (float64,)
    1 compiled in 300 ms -> 1 compiled in 450 ms (+150 ms a trip, +50%)
    the store held it before and no more: /store

Faster (1)
  shop.round, numba.ufunc
    1 compiled in 100 ms -> 1 compiled in 60.0 ms (-40.0 ms a trip, -40%)
    the store was not asked: disabled

More or fewer trips (1)
  shop.stock
    1 loaded in 50.0 ms -> 3 loaded in 150 ms (50.0 ms each)

New (2)
  shop.new
    1 compiled in 30.0 ms
  1 internal function, +10.0 ms in all

Gone (1)
  shop.old
    1 compiled in 40.0 ms

Compiled in both (2)
  the store held it before and no more: /store; 450 ms
    shop.tax
  the store was not asked: disabled; 60.0 ms
    shop.round

Times are own times; one differs from 10.0 ms and 25% on.
""" == printed(shop().difference(tmp_path))


def test_a_difference_is_as_its_schema_says(tmp_path: Path) -> None:
    runs = shop()
    runs.add(AFTER, outcome=None, kernel="shop.broken", error_type="ValueError")
    data = json.loads(json.dumps({**difference_json(runs.difference(tmp_path)), **NOTHING_LEFT_OUT}))

    assert [] == errors("diff", data)
    assert 7 == len(data["kernels"])
    assert {
        "runtime": "numba",
        "layer": "numba",
        "kernel": "shop.price",
        "identity": None,
        "specialization": None,
        "internal": False,
        "change": "outcome",
        "before": {"trips": 1, "compiled": 0, "loaded": 1, "rekeyed": 0, "own_ns": 20_000_000},
        "after": {"trips": 1, "compiled": 1, "loaded": 0, "rekeyed": 0, "own_ns": 900_000_000},
        "why": {
            "reason": "excess",
            "detail": "only the time stamp of the source differs",
            "differing": [{"name": "source_stamp", "kind": "stamp", "before": "1", "after": "2"}],
            "equal": ["options", "signature"],
            "earlier": {"session": BEFORE.id, "seq": 0},
        },
    } == data["kernels"][0]


def test_two_equal_runs_have_no_difference(tmp_path: Path) -> None:
    runs = TwoRuns()
    runs.add(BEFORE, outcome=LOADED)
    runs.add(AFTER, outcome=LOADED)

    assert "\nNothing differs.\n" in printed(runs.difference(tmp_path))


def test_of_many_entries_those_that_moved_most_are_named(tmp_path: Path) -> None:
    runs = TwoRuns()
    for number in range(SHOWN + 2):
        runs.add(AFTER, number + 1, kernel=f"shop.k{number}.")
    text = printed(runs.difference(tmp_path))

    assert f"\nNew ({SHOWN + 2})\n  shop.k{SHOWN + 1}.\n" in text
    assert "\n  2 more, +3.00 ms in all\n" in text
    assert "shop.k1." not in text


def test_many_kernels_with_one_reason_are_one_entry(tmp_path: Path) -> None:
    runs = TwoRuns()
    for session in (BEFORE, AFTER):
        for number in range(7):
            runs.add(session, kernel=f"shop.k{number}", attributes={semconv.KEY_ABSENT_REASON: "disabled"})
        runs.add(
            session, kernel="numba.np.dot", attributes={semconv.KEY_ABSENT_REASON: "disabled", **INTERNAL}
        )

    assert """
Compiled in both (8)
  the store was not asked: disabled; 800 ms
    shop.k0, shop.k1, shop.k2, shop.k3, shop.k4, 2 other kernels, 1 internal
    function
""" in printed(runs.difference(tmp_path))


def test_no_line_is_longer_than_80_columns_and_nothing_acts_on_a_terminal(tmp_path: Path) -> None:
    runs = TwoRuns()
    wide = components(options="x" * 100, source_stamp="\x1b[31m")
    runs.add(
        BEFORE,
        kernel="shop." + "deep." * 40,
        specialization="(int64,)" * 100,
        key=key(1),
        attributes=components(),
    )
    runs.add(
        AFTER, kernel="shop." + "deep." * 40, specialization="(int64,)" * 100, key=key(2), attributes=wide
    )
    runs.add(AFTER, outcome=None, kernel="\x1b[31m", error_type="\x1b[31m")
    text = printed(runs.difference(tmp_path))

    assert PLAIN_WIDTH >= max(map(len, text.splitlines()))
    assert "\x1b" not in text


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=st.lists(trips(), max_size=6, unique_by=lambda trip: trip.session.id))
def test_any_trips_can_be_compared(tmp_path_factory: pytest.TempPathFactory, drawn: list[Trip]) -> None:
    trips_of_two = [
        replace(trip, session=replace(trip.session, run=(BEFORE, AFTER)[number % 2].run))
        for number, trip in enumerate(drawn)
    ]
    path = write_recording(tmp_path_factory.mktemp("drawn") / "r.db", [*shop().trips, *trips_of_two])
    difference = difference_in(path)

    assert [] == errors("diff", json.loads(json.dumps({**difference_json(difference), **NOTHING_LEFT_OUT})))
    assert printed(difference)
