"""What stores gave and took, on trips of which every number is known."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path

from cli.command import otel_kernel
from json_schemas import errors
from written_trips import write_recording

from otel_kernel import semconv
from otel_kernel.records import AttributeValue, CompilationOutcome, Trip
from otel_kernel.report.opening import opened
from otel_kernel.report.render_stores import print_stores
from otel_kernel.report.stores import Reason, Store, Stores, by_store
from report.shop import COMPILED, EARLIER, LOADED, WEB, WORKER, a_trip

KIND, FOLDER = "numba.file", "/srv/shop/__pycache__"
FULL, READ_ONLY = "No space left on device", "Read-only file system"
HERE: Mapping[str, AttributeValue] = {semconv.STORE_KIND: KIND, semconv.STORE_LOCATION: FOLDER}


def _trip(
    number: int, outcome: CompilationOutcome, attributes: Mapping[str, AttributeValue], layer: str = "numba"
) -> Trip:
    session = WORKER if number % 2 else WEB
    return a_trip(session, number, f"shop.k{number}", number, 1, outcome, layer=layer, attributes=attributes)


def _refused(reason: str | None) -> Mapping[str, AttributeValue]:
    return {**HERE, semconv.STORE_STORED: False, **({semconv.STORE_REASON: reason} if reason else {})}


TRIPS = (
    a_trip(EARLIER, 0, "shop.old", -9000, 1, COMPILED, attributes={**HERE, semconv.STORE_STORED: True}),
    _trip(0, LOADED, HERE),
    _trip(1, LOADED, HERE),
    _trip(2, COMPILED, {**HERE, semconv.STORE_STORED: True, semconv.STORE_REJECTED: "EOFError"}),
    _trip(3, COMPILED, _refused(READ_ONLY)),
    _trip(4, COMPILED, _refused(READ_ONLY)),
    _trip(5, COMPILED, _refused(FULL)),
    _trip(6, COMPILED, _refused(None)),
    _trip(8, COMPILED, {}),
    _trip(10, LOADED, {semconv.STORE_LOCATION: "/var/cache/\x1b[31m"}, "triton"),
)

REASONS = (Reason(READ_ONLY, 2), Reason(None, 1), Reason(FULL, 1))
STORES = (
    Store("numba", None, None, 1, 0, 0, 0, 0),
    Store("numba", KIND, FOLDER, 2, 2, 1, 4, 1, REASONS),
    Store("triton", None, "/var/cache/\x1b[31m", 1, 1, 0, 0, 0),
)


def _stores(path: Path, run: str | None) -> Stores:
    def lost(problem: object) -> None:
        raise AssertionError(problem)

    with opened(str(path), lost) as recording:
        return by_store(recording.connection, run)


def test_each_store_says_what_it_gave_and_took_and_why_not(tmp_path: Path) -> None:
    recording = write_recording(tmp_path / "r.db", TRIPS)

    assert Stores(WEB.run, STORES) == _stores(recording, WEB.run)


def test_stores_of_all_runs_are_added_up(tmp_path: Path) -> None:
    recording = write_recording(tmp_path / "r.db", TRIPS)

    assert Store("numba", KIND, FOLDER, 3, 2, 2, 4, 1, REASONS) == _stores(recording, None).stores[1]


def test_stores_are_printed_for_people_without_what_acts_on_a_terminal() -> None:
    file = io.StringIO()

    print_stores(Stores(WEB.run, STORES), file)

    assert (
        file.getvalue()
        == f"""\
Run {WEB.run}

numba
  no store, in 1 process

numba
  numba.file /srv/shop/__pycache__, 2 processes
  2 loaded, 1 stored, 4 not stored, 1 damaged
    not taken: Read-only file system; 2 trips
    not taken: the runtime does not say why; 1 trip
    not taken: No space left on device; 1 trip

triton
  /var/cache/\\x1b[31m, 1 process
  1 loaded, 0 stored
"""
    )


def test_report_by_store_prints_text_and_json_as_the_schema_says(tmp_path: Path) -> None:
    recording = write_recording(tmp_path / "r.db", TRIPS)

    text = otel_kernel("report", "--by", "store", recording)
    data = json.loads(otel_kernel("report", "--by", "store", "--json", recording).stdout)

    assert text.stdout.startswith(f"Run {WEB.run}\n\nnumba\n  no store, in 1 process\n")
    assert [] == errors("stores", data)
    assert [4, 0] == [store["not_stored"] for store in data["stores"][1:]]


def test_run_without_records_says_so(tmp_path: Path) -> None:
    failed = a_trip(WEB, 0, "shop.broken", 0, 10, error_type="shop.Error")
    recording = write_recording(tmp_path / "r.db", (failed,))

    assert f"Run {WEB.run}: no records.\n" == otel_kernel("report", "--by", "store", recording).stdout
