"""What a trip holds at each level, and how it is measured."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from acme_instrumentor import compile_point, instrumentor
from checks import ends, failing, messages
from opentelemetry.sdk.metrics.export import HistogramDataPoint
from telemetry import CollectingSink, Telemetry

from otel_kernel import phases, pipeline, semconv, session, spans
from otel_kernel.ending import COMPONENT_LIMIT
from otel_kernel.records import CompilationOutcome, KernelCacheKey, TextDigest, Trip, digest128, hex128
from otel_kernel.shapes import Call
from otel_kernel.trip import (
    DIGEST_LIMIT,
    MESSAGE_LIMIT,
    Begin,
    OpenTrip,
    current,
    error_type,
    wanted,
)

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

Fill = Callable[[OpenTrip], object]


def told(
    telemetry: Telemetry,
    fill: Fill = lambda _trip: None,
    *,
    outcome: CompilationOutcome | None = CompilationOutcome.COMPILED,
    error: BaseException | None = None,
    kernel: str = "k",
    **options: Any,
) -> Trip:
    """Return the trip that a reader has filled."""
    state = pipeline.configure(**options)
    open_trip = OpenTrip("acme", Begin(kernel, "acme"), state)
    open_trip.begin()
    open_trip.stop(None, error)
    open_trip.outcome = outcome
    fill(open_trip)
    open_trip.finish()
    return telemetry.trips[-1]


# Attributes.


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("compute.kernel.unknown", "x", "compute.kernel.unknown is not defined in semconv as an attribute"),
        (semconv.STAGE, 1, "compute.kernel.stage. is not defined in semconv as an attribute"),
        (semconv.STAGE + "lower", 1, "compute.kernel.stage.lower is not defined in semconv as an attribute"),
        (semconv.DEVICE, 1, "compute.kernel.device must be str, got 1"),
        (semconv.RANK, True, "compute.kernel.rank must be int, got True"),
        (semconv.DEVICE_LOADED, 1, "compute.kernel.device_loaded must be bool, got 1"),
        (semconv.ARTIFACT_SIZE, 2**63, "compute.kernel.artifact.size must be an int of 64 bits, got "),
    ],
)
def test_bad_attribute_is_refused_and_costs_nothing_else(
    telemetry: Telemetry, name: str, value: Any, message: str
) -> None:
    def fill(open_trip: OpenTrip) -> None:
        with pytest.raises(ValueError) as raised:
            open_trip.set(name, value)

        assert str(raised.value).startswith(message)

        open_trip.set(semconv.DEVICE, "cuda:0")

    assert "cuda:0" == told(telemetry, fill).attributes[semconv.DEVICE]


def test_none_sets_nothing(telemetry: Telemetry) -> None:
    assert semconv.DEVICE not in told(telemetry, lambda trip: trip.set(semconv.DEVICE, None)).attributes


def test_lone_surrogates_are_escaped_wherever_a_text_comes_in(telemetry: Telemetry) -> None:
    def fill(open_trip: OpenTrip) -> None:
        open_trip.set(semconv.DEVICE, "d\udc80")
        open_trip.set_source("s\udc80")
        open_trip.set_key(build="b\udc80", rest="r", components={"c": "c\udc80"}, entry="e\udc80")

    trip = told(telemetry, fill, kernel="k\udc80", level="full")

    assert "k\\udc80" == trip.kernel
    assert "s\\udc80" == trip.source
    assert ["d\\udc80", "c\\udc80", "e\\udc80"] == [
        trip.attributes[name] for name in (semconv.DEVICE, semconv.KEY_COMPONENT + "c", semconv.STORE_ENTRY)
    ]
    assert "compile k\\udc80" == telemetry.spans[-1].name


def test_every_trip_says_where_it_ran(telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    phases.enter("warm-up")
    attributes = told(telemetry).attributes

    assert {
        semconv.PROCESS_PID: os.getpid(),
        semconv.THREAD_ID: threading.get_native_id(),
        semconv.RANK: 3,
        semconv.WORLD_SIZE: 8,
        semconv.PHASE: "warm-up",
        semconv.OUTCOME_FROM: "runtime",
        semconv.DEVICE_LOADED: False,
    } == dict(attributes)


def test_trip_without_outcome_says_nothing_of_a_record(telemetry: Telemetry) -> None:
    attributes = told(telemetry, outcome=None, error=LookupError()).attributes

    assert {semconv.PROCESS_PID, semconv.THREAD_ID} == attributes.keys()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, None),
        ({"RANK": "2"}, (2, None)),
        ({"RANK": "two"}, None),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "4"}, (1, 4)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "RANK": "0", "WORLD_SIZE": "2"}, (0, 2)),
        ({"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "x"}, (5, None)),
    ],
)
def test_rank_is_what_the_launcher_says(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: object
) -> None:
    for name in ("RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert expected == session.rank()


def test_rank_is_what_a_process_group_says_before_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    answers: list[tuple[int, int] | None] = [None, (3, 8)]

    def group() -> tuple[int, int] | None:
        return answers.pop(0)

    session.ask_for_rank(group)
    asked = [session.rank(), session.rank()]
    session.ask_no_more(group)

    assert [(0, 1), (3, 8), (0, 1)] == [*asked, session.rank()]


@pytest.mark.faults_logged
def test_a_process_group_that_raises_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RANK", "2")

    def group() -> tuple[int, int] | None:
        raise AttributeError("global_state")

    session.ask_for_rank(group)
    found = session.rank()
    session.ask_no_more(group)

    assert 2 == (found or [None])[0]
    assert 1 == len(caplog.records)


# Key, identity, stages.


def test_key_is_made_of_its_texts(telemetry: Telemetry) -> None:
    trip = told(
        telemetry,
        lambda trip: trip.set_key(
            build="acme 1", rest="k\nf32", components={"Target CPU": "znver3"}, entry="e"
        ),
    )

    assert KernelCacheKey(id=digest128("k\nf32"), build_id=digest128("acme 1")) == trip.key
    assert "znver3" == trip.attributes[semconv.KEY_COMPONENT + "target_cpu"]
    assert "e" == trip.attributes[semconv.STORE_ENTRY]


def test_long_component_travels_as_its_digest(telemetry: Telemetry) -> None:
    short, long = "x" * COMPONENT_LIMIT, "x" * (COMPONENT_LIMIT + 1)
    attributes = told(
        telemetry, lambda trip: trip.set_key(build="b", rest="r", components={"short": short, "long": long})
    ).attributes

    assert short == attributes[semconv.KEY_COMPONENT + "short"]
    assert f"blake2b:{hex128(digest128(long))}" == attributes[semconv.KEY_COMPONENT + "long"]


def test_components_beyond_the_family_travel_together(telemetry: Telemetry) -> None:
    components = {f"c{number}": str(number) for number in range(semconv.MAX_FAMILY + 2)}
    attributes = told(
        telemetry, lambda trip: trip.set_key(build="b", rest="r", components=components)
    ).attributes
    shown = [name for name in attributes if name.startswith(semconv.KEY_COMPONENT)]
    other = attributes[semconv.KEY_COMPONENT_OTHER]

    assert semconv.MAX_FAMILY == len(shown)
    assert isinstance(other, str)
    assert {"c24": "24", "c25": "25"} == json.loads(other)


def test_stages_of_one_name_add_up_and_the_shortest_are_summed(telemetry: Telemetry) -> None:
    def fill(open_trip: OpenTrip) -> None:
        for number in range(semconv.MAX_FAMILY + 2):
            open_trip.add_stage(f"Stage {number}", 1000 + number)
        open_trip.add_stage("stage-25", 5)
        open_trip.add_stage("stage 24", -7)

    attributes = told(telemetry, fill).attributes

    assert 1030 == attributes[semconv.STAGE + "stage_25"]
    assert 1024 == attributes[semconv.STAGE + "stage_24"]
    assert 1000 + 1001 == attributes[semconv.STAGE_OTHER]


def test_identity_is_the_same_for_every_outcome_and_level(telemetry: Telemetry) -> None:
    def fill(open_trip: OpenTrip) -> None:
        open_trip.set_code_digest("abc")
        open_trip.set(semconv.SPECIALIZATION, "(f32)")
        open_trip.set(semconv.TARGET, "cuda:90")

    identities = {
        told(telemetry, fill, outcome=outcome, level=level).attributes[semconv.IDENTITY]
        for outcome in CompilationOutcome
        for level in ("basic", "full")
    }

    assert {hex128(digest128("k\0abc\0(f32)\0cuda:90"))} == identities


def test_identity_is_absent_without_a_code_digest(telemetry: Telemetry) -> None:
    assert semconv.IDENTITY not in told(telemetry).attributes


# Texts and messages, by level.


def test_basic_keeps_the_digest_of_a_text_and_calls_nothing_for_it(telemetry: Telemetry) -> None:
    def fill(open_trip: OpenTrip) -> None:
        open_trip.set_ir("secret é")
        open_trip.set_source(lambda: pytest.fail("called at level basic"))

    trip = told(telemetry, fill)
    data = "secret é".encode()

    assert TextDigest(hashlib.sha256(data).hexdigest(), len(data)) == trip.ir
    assert trip.source is None
    assert "secret" not in repr(telemetry.spans[-1].attributes)


@pytest.mark.parametrize(("length", "kept"), [(DIGEST_LIMIT, True), (DIGEST_LIMIT + 1, False)])
def test_basic_digests_no_text_beyond_the_limit(telemetry: Telemetry, length: int, kept: bool) -> None:
    assert kept == (told(telemetry, lambda trip: trip.set_source("x" * length)).source is not None)


def test_full_keeps_both_texts(telemetry: Telemetry) -> None:
    def fill(open_trip: OpenTrip) -> None:
        open_trip.set_ir("the ir")
        open_trip.set_source(lambda: "the source")

    trip = told(telemetry, fill, level="full")

    assert ("the ir", "the source") == (trip.ir, trip.source)


def test_loaded_trip_has_no_ir(telemetry: Telemetry) -> None:
    def fill(open_trip: OpenTrip) -> None:
        open_trip.set_ir(lambda: pytest.fail("called for a loaded trip"))
        open_trip.set_source("the source")

    trip = told(telemetry, fill, outcome=CompilationOutcome.LOADED, level="full")

    assert (None, "the source") == (trip.ir, trip.source)


class _SpeakingError(Exception):
    """An error of a runtime."""


@pytest.mark.parametrize(
    ("level", "detail", "text", "expected"),
    [
        ("basic", None, "secret", "{type}"),
        ("basic", "k.py:3", "secret", "{type} at k.py:3"),
        ("full", None, "name 'x'", "{type}: name 'x'"),
        ("full", "k.py:3", "name 'x'", "{type} at k.py:3: name 'x'"),
        ("full", None, "", "{type}"),
        ("full", None, "y" * 1000, "{type}: " + "y" * MESSAGE_LIMIT),
    ],
)
def test_message_says_what_the_level_allows(
    telemetry: Telemetry, level: str, detail: str | None, text: str, expected: str
) -> None:
    def fill(open_trip: OpenTrip) -> None:
        if detail is not None:
            open_trip.say_of_error(detail)

    error = _SpeakingError(text)
    trip = told(telemetry, fill, outcome=None, error=error, level=level)
    span = telemetry.spans[-1]

    assert error_type(error) == trip.error_type
    assert expected.format(type=error_type(error)) == trip.message == span.status.description
    assert (level == "full") == bool(span.events)
    assert level == "full" or "secret" not in span.to_json()


class _MuteError(Exception):
    """An error that cannot be printed."""

    def __str__(self) -> str:
        raise LookupError("theirs")


@pytest.mark.parametrize("level", ["basic", "full"])
def test_error_that_cannot_be_printed_is_named_by_its_class(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture, level: str
) -> None:
    error = _MuteError()
    trip = told(telemetry, outcome=None, error=error, level=level)
    (point,) = _points(telemetry, semconv.DURATION_METRIC)

    assert error_type(error) == trip.message == telemetry.spans[-1].status.description
    assert 1 == point.count
    assert [] == messages(caplog)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (KeyError("x"), "KeyError"),
        (json.JSONDecodeError("x", "", 0), "json.decoder.JSONDecodeError"),
        (type("Odd", (Exception,), {"__module__": "m\udc80"})(), "m\\udc80.Odd"),
    ],
    ids=["builtin", "qualified", "surrogate"],
)
def test_error_type_is_module_and_name(error: BaseException, expected: str) -> None:
    assert expected == error_type(error)


# Time.


def test_span_ends_a_duration_after_its_start(telemetry: Telemetry) -> None:
    trip = told(telemetry)
    span = telemetry.spans[-1]

    assert span.start_time is not None
    assert span.end_time is not None
    assert trip.started_ns == span.start_time
    assert trip.duration_ns == span.end_time - span.start_time


def test_clock_stands_still_between_stop_and_resume(telemetry: Telemetry) -> None:
    open_trip = OpenTrip("acme", Begin("k", "acme"), pipeline.current())
    open_trip.begin()

    assert current() is open_trip

    first = open_trip.stop(None, None)

    assert current() is None

    open_trip.resume()

    assert current() is open_trip

    second = open_trip.stop(None, None)
    open_trip.outcome = CompilationOutcome.COMPILED
    open_trip.finish()

    assert first + second == telemetry.trips[-1].duration_ns


def test_oldest_active_is_the_age_of_the_oldest_trip_in_flight(telemetry: Telemetry) -> None:
    outer, inner = (OpenTrip("acme", Begin("k", "acme"), pipeline.current()) for _ in range(2))

    assert 0 == spans.oldest_active()

    outer.begin()
    inner.begin()

    assert spans.oldest_active() > 0

    inner.stop(None, None)

    assert spans.oldest_active() > 0

    outer.stop(None, None)

    assert 0 == spans.oldest_active()
    assert [] == telemetry.spans

    inner.finish()
    outer.finish()

    assert 2 == len(telemetry.spans)


# Measurements.


def _points(telemetry: Telemetry, name: str) -> list[Any]:
    data = telemetry.reader.get_metrics_data()
    return [
        point
        for resource in (data.resource_metrics if data is not None else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
        for point in metric.data.data_points
    ]


def test_histogram_counts_records_and_failures_and_never_by_kernel(telemetry: Telemetry) -> None:
    phases.enter("serving")
    told(telemetry, lambda trip: trip.set(semconv.STORE_STORED, True))
    told(telemetry, outcome=None, error=LookupError(), kernel="other")
    told(telemetry, outcome=None)  # abandoned
    points: list[HistogramDataPoint] = _points(telemetry, semconv.DURATION_METRIC)
    common = {semconv.RUNTIME: "acme", semconv.LAYER: "acme", semconv.PHASE: "serving"}

    assert [
        {**common, semconv.OUTCOME: "compiled", semconv.STORE_STORED: True},
        {**common, semconv.ERROR_TYPE: "LookupError"},
    ] == [dict(point.attributes or {}) for point in points]
    assert [1, 1] == [point.count for point in points]
    assert list(semconv.DURATION_BUCKETS) == list(points[0].explicit_bounds)


def test_measurement_leads_to_its_span(telemetry: Telemetry) -> None:
    trip = told(telemetry)
    (point,) = _points(telemetry, semconv.DURATION_METRIC)
    (exemplar,) = point.exemplars

    assert (trip.trace_id, trip.span_id) == (f"{exemplar.trace_id:032x}", f"{exemplar.span_id:016x}")


def test_gauge_shows_a_trip_in_flight(telemetry: Telemetry) -> None:
    open_trip = OpenTrip("acme", Begin("k", "acme"), pipeline.current())
    open_trip.begin()
    (during,) = _points(telemetry, semconv.OLDEST_ACTIVE_METRIC)
    open_trip.stop(None, None)
    (after,) = _points(telemetry, semconv.OLDEST_ACTIVE_METRIC)
    open_trip.finish()

    assert during.value > 0
    assert 0 == after.value


# Sinks and options.


def test_sink_that_wants_starts_is_told_of_the_unfinished_trip(telemetry: Telemetry) -> None:
    telemetry.sink.wants_start = True
    trip = told(telemetry, lambda trip: trip.set(semconv.DEVICE, "cuda:0"))
    (start,) = telemetry.sink.starts

    assert "unfinished" == start.state
    assert (trip.session, trip.seq, trip.kernel, trip.started_ns) == (
        start.session,
        start.seq,
        start.kernel,
        start.started_ns,
    )
    assert (trip.trace_id, trip.span_id) == (start.trace_id, start.span_id)
    assert trip.trace_id is not None


def test_sinks_that_do_not_want_starts_are_told_of_none(telemetry: Telemetry) -> None:
    told(telemetry)

    assert ([], 1) == (telemetry.sink.starts, len(telemetry.trips))


def test_program_may_change_provider_and_sinks_while_a_trip_is_open(acme: Any, telemetry: Telemetry) -> None:
    other = Telemetry(CollectingSink())
    instrumentor().instrument()
    made = acme.Compiler()

    def body() -> None:
        pipeline.configure(tracer_provider=other.tracer_provider)
        pipeline.remove_sink(telemetry.sink)
        pipeline.add_sink(other.sink)
        made.compile("inner")

    made.compile("outer", body)
    other.close()

    assert ([("acme.outer", "compiled")], 1) == (ends(telemetry.trips), len(telemetry.spans))
    assert ([("acme.inner", "compiled")], 1) == (ends(other.trips), len(other.spans))


@pytest.mark.faults_logged
def test_text_file_that_cannot_be_written_costs_the_text_on_the_span_alone(
    telemetry: Telemetry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    trip = told(
        telemetry,
        lambda trip: trip.set_source("long"),
        level="full",
        inline_limit=1,
        text_files=blocked / "texts",
    )

    (span,) = telemetry.spans
    attributes = span.attributes or {}

    assert "long" == trip.source
    assert ("none", 4) == (attributes[semconv.SOURCE_LOCATION], attributes[semconv.SOURCE_SIZE])
    assert "compiled" == attributes[semconv.OUTCOME]
    assert 1 == len(messages(caplog))
    assert f"keeping a text in {blocked / 'texts'} failed in otel-kernel" in caplog.text


def test_level_off_wants_no_trip(telemetry: Telemetry) -> None:
    assert wanted() is pipeline.current()

    pipeline.configure(level="off")

    assert wanted() is None
    assert [] == telemetry.trips


def test_reader_sees_result_and_error_and_neither_afterwards(acme: Any, telemetry: Telemetry) -> None:
    seen: list[tuple[str, object]] = []
    kept: list[OpenTrip] = []

    def read(call: Call) -> Generator[Begin, OpenTrip, None]:
        done = yield Begin(f"acme.{call.argument('name')}", "acme")
        seen.append((type(done.result).__name__, done.error))
        kept.append(done)

    instrumentor(compile_point(read)).instrument()
    error = ArithmeticError()
    acme.Compiler().compile("k")
    with contextlib.suppress(ArithmeticError):
        acme.Compiler().compile("broken", failing(error))

    assert [("Kernel", None), ("NoneType", error)] == seen
    assert [(None, None)] * 2 == [(trip.result, trip.error) for trip in kept]
    assert [("acme.k", "unread"), ("acme.broken", "ArithmeticError")] == ends(telemetry.trips)
    assert gc.isenabled()
