"""A span that is no trip says so, and a damaged one is a reject with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from mapping.carriers import complaint, full_trip
from otel_kernel import semconv
from otel_kernel.mapping import NotATrip, Reject, SpanView, read_span, to_attributes
from otel_kernel.records import Abandoned, CompilationOutcome, TextDigest, Trip, TruncatedText

RECORD = full_trip()
TRIPS = {
    "full record": RECORD,
    "basic record": replace(RECORD, ir=TextDigest.of("ir"), source=TextDigest.of("source")),
    "failed": replace(RECORD, outcome=None, error_type="ValueError", message="ValueError"),
    "abandoned": replace(RECORD, outcome=None, abandoned=Abandoned.NESTED),
}
REMOVALS = [(kind, name) for kind, trip in TRIPS.items() for name in to_attributes(trip)]
FULL = to_attributes(RECORD)
TEXTS = (semconv.IR_TEXT, semconv.SOURCE_TEXT)


def view(attributes: Mapping[str, object], trip: Trip = RECORD) -> SpanView:
    return SpanView(
        scope="otel_kernel.acme",
        attributes=attributes,
        start_ns=trip.started_ns,
        trace_id=trip.trace_id or "",
        span_id=trip.span_id or "",
        description=trip.message or "",
    )


def changed(name: str, value: object) -> Trip | NotATrip | Reject:
    """Read the full record with one attribute changed, and its length told as if it had been so from the start."""
    attributes: dict[str, object] = {**FULL, name: value}
    if name not in (*TEXTS, semconv.RECORD_LENGTH):
        before, after = (len(v) if isinstance(v, str) else 0 for v in (FULL.get(name), value))
        attributes[semconv.RECORD_LENGTH] = FULL[semconv.RECORD_LENGTH] + after - before  # type: ignore[operator] # an int
    if name not in FULL:
        attributes[semconv.RECORD_SIZE] = len(attributes)
    return read_span(view(attributes))


def rejected(found: Trip | NotATrip | Reject) -> str:
    """Return the reason of a reject, which knows its span."""
    assert isinstance(found, Reject), found
    assert (RECORD.trace_id, RECORD.span_id) == (found.trace_id, found.span_id)
    return found.reason


def test_undamaged_trips_are_read() -> None:
    for trip in TRIPS.values():
        assert trip == read_span(view(to_attributes(trip), trip))


@pytest.mark.parametrize(("kind", "name"), REMOVALS)
def test_a_trip_without_any_one_of_its_attributes_owns_up_to_it(kind: str, name: str) -> None:
    trip = TRIPS[kind]
    attributes = to_attributes(trip)
    del attributes[name]
    found = read_span(view(attributes, trip))

    if name in TEXTS:
        assert "" == complaint(trip, found)
        assert isinstance(found, Trip)
        assert trip != found
    else:
        assert rejected(found).startswith("lost: ")


ALWAYS = [
    *(name for name, each in semconv.ATTRIBUTES.items() if each.when in ("always", "at the end")),
    semconv.KEY_ID,
    semconv.KEY_BUILD_ID,
    semconv.IR_SHA256,
    semconv.IR_SIZE,
    semconv.IR_LOCATION,
    semconv.SOURCE_SHA256,
    semconv.SOURCE_SIZE,
    semconv.SOURCE_LOCATION,
]


@pytest.mark.parametrize("name", ALWAYS)
def test_an_attribute_that_must_be_there_is_named_when_lost(name: str) -> None:
    found = read_span(view({each: value for each, value in FULL.items() if each != name}))

    assert rejected(found).startswith(f"lost: {name};")


def test_a_digest_that_is_lost_whole_is_named_by_its_text() -> None:
    gone = (semconv.IR_SHA256, semconv.IR_SIZE)
    found = read_span(view({each: value for each, value in FULL.items() if each not in gone}))

    assert rejected(found).startswith(f"lost: {semconv.IR_SHA256}, {semconv.IR_SIZE};")


def test_a_text_that_was_taken_away_does_not_hide_another_loss() -> None:
    gone = (semconv.IR_TEXT, semconv.BUILD)
    found = read_span(view({each: value for each, value in FULL.items() if each not in gone}))

    assert rejected(found).startswith("lost: 1 optional attributes; of ")


def test_texts_that_were_taken_away_come_back_as_truncated() -> None:
    found = read_span(view({each: value for each, value in FULL.items() if each not in TEXTS}))

    assert isinstance(found, Trip)
    assert isinstance(found.ir, TruncatedText)
    assert isinstance(found.source, TruncatedText)
    assert "" == found.ir.prefix == found.source.prefix
    assert "" == complaint(RECORD, found)


WRONG_TYPES: list[object] = [b"bytes", 1.5, None, ["a"], {"a": 1}]


@pytest.mark.parametrize("name", FULL)
def test_a_value_of_another_type_is_named(name: str) -> None:
    kind = type(FULL[name])
    others: list[object] = [value for value in ("1", 1, True) if type(value) is not kind]
    for value in (*others, *WRONG_TYPES):
        assert name in rejected(changed(name, value))


@pytest.mark.parametrize("name", [name for name in FULL if semconv.ATTRIBUTES.get(name, None)])
def test_a_huge_wrong_value_is_not_printed_whole(name: str) -> None:
    assert 500 > len(rejected(changed(name, b"x" * 1_000_000)))


@pytest.mark.parametrize(
    "name", [name for name in FULL if (known := semconv.definition(name)) and known.values]
)
@pytest.mark.parametrize("value", ["", "Compiled", "unknown", "compiled "])
def test_an_unknown_enum_value_is_named_with_those_there_are(name: str, value: str) -> None:
    reason = rejected(changed(name, value))

    assert name in reason
    assert repr(value) in reason
    assert all(known in reason for known in semconv.ATTRIBUTES[name].values)


@pytest.mark.parametrize("version", [2, 3, 2**63 - 1])
def test_a_newer_version_asks_for_an_update_whatever_else_is_new(version: int) -> None:
    newer = {name: value for name, value in FULL.items() if name.startswith("compute.kernel.session.")} | {
        semconv.RECORD_VERSION: version
    }
    reason = rejected(read_span(view(newer)))

    assert f"{semconv.RECORD_VERSION} is {version}" in reason
    assert "update" in reason


@pytest.mark.parametrize("version", [0, -1])
def test_a_version_that_never_was_is_rejected(version: int) -> None:
    assert semconv.RECORD_VERSION in rejected(changed(semconv.RECORD_VERSION, version))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        *((name, value, "32 lower-case hex digits")
            for name in (semconv.KEY_ID, semconv.KEY_BUILD_ID, semconv.SESSION_ID, semconv.SESSION_RUN)
            for value in ("", "f" * 31, "f" * 33, "F" * 32, "g" * 32, "f" * 31 + "\n")),
        *((name, value, "sha256 must be 64 lower-case hex digits")
            for name in (semconv.IR_SHA256, semconv.SOURCE_SHA256)
            for value in ("", "f" * 63, "F" * 64, "../../../../etc/passwd", "f" * 63 + "\0")),
        (semconv.IR_SHA256, "f" * 64, f"altered: {semconv.IR_TEXT}"),
        (semconv.SOURCE_SHA256, "f" * 64, f"altered: {semconv.SOURCE_TEXT}"),
        (semconv.IR_SIZE, 2, f"altered: {semconv.IR_TEXT}"),
        (semconv.IR_SIZE, 2**63 - 1, f"altered: {semconv.IR_TEXT}"),
        (semconv.IR_SIZE, -1, "size must be"),
        (semconv.IR_TEXT, "label 1:\n" * 100, f"altered: {semconv.IR_TEXT}"),
        (semconv.IR_TEXT, "label 0:\n" * 101, f"altered: {semconv.IR_TEXT}"),
        (semconv.IR_TEXT, "\ud800", semconv.IR_TEXT),
        (semconv.SESSION_SEQ, -1, "Trip.seq"),
        (semconv.SESSION_PARENT_SEQ, 12, "Trip.parent_seq"),
        (semconv.SESSION_PARENT_SEQ, -1, "Trip.parent_seq"),
        (semconv.DURATION_NS, -1, "Trip.duration_ns"),
        (semconv.KERNEL_NAME, "", "Trip.kernel"),
        (semconv.LAYER, "", "Trip.layer"),
        (semconv.RUNTIME, "", "Trip.runtime"),
        (semconv.KERNEL_NAME, "\ud800", "Trip.kernel"),
        (semconv.BUILD, "\ud800", semconv.BUILD),
        (semconv.ARTIFACT_SIZE, 2**63, semconv.ARTIFACT_SIZE),
        (semconv.OUTCOME, "loaded", "Trip.ir"),
        (semconv.ERROR_TYPE, "ValueError", "Trip.outcome"),
        (semconv.ABANDONED, "nested", "Trip.outcome"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_named(name: str, value: object, said: str) -> None:
    assert said in rejected(changed(name, value))


def test_a_trip_without_any_end_is_rejected() -> None:
    attributes = to_attributes(TRIPS["abandoned"])
    length = len(str(attributes.pop(semconv.ABANDONED)))
    attributes[semconv.RECORD_SIZE] = len(attributes)
    attributes[semconv.RECORD_LENGTH] = int(attributes[semconv.RECORD_LENGTH]) - length

    assert "Trip.duration_ns" in rejected(read_span(view(attributes)))


@pytest.mark.parametrize(
    "change",
    [
        {"start_ns": -1},
        {"start_ns": 2**63},
        {"trace_id": "1" * 31},
        {"span_id": "G" * 16},
        {"description": "\ud800"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_span_that_cannot_be_is_rejected(change: Mapping[str, int | str]) -> None:
    found = read_span(replace(view(FULL), **change))  # type: ignore[arg-type] # wrong on purpose

    assert isinstance(found, Reject)
    assert "Trip." in found.reason


@pytest.mark.parametrize("name", [name for name, value in FULL.items() if isinstance(value, str) and value])
def test_a_string_that_lost_its_end_is_seen(name: str) -> None:
    found = read_span(view({**FULL, name: str(FULL[name])[:-1]}))

    if name in TEXTS:
        assert isinstance(found, Trip)
        assert "" == complaint(RECORD, found)
    else:
        assert rejected(found).startswith("cut: ")


@pytest.mark.parametrize("name", [name for name, value in FULL.items() if isinstance(value, str)])
def test_a_string_that_grew_is_seen(name: str) -> None:
    rejected(read_span(view({**FULL, name: f"{FULL[name]}."})))


@pytest.mark.parametrize(
    "name", ["compute.kernel.of_the_users", semconv.ERROR_TYPE, semconv.KEY_ABSENT_REASON]
)
def test_an_attribute_that_was_set_on_the_way_is_seen(name: str) -> None:
    found = read_span(view({**FULL, name: "disabled"}))

    assert rejected(found).startswith("added: ")


def test_an_attribute_that_was_set_on_the_way_does_not_make_up_for_a_lost_one() -> None:
    attributes = {name: value for name, value in FULL.items() if name != semconv.BUILD}
    attributes["compute.kernel.of_the_users"] = "xyz"

    assert rejected(read_span(view(attributes))).startswith(("cut: ", "altered: "))


def test_attributes_of_others_on_our_span_are_left_aside() -> None:
    others: dict[str, object] = {"http.route": "/", "k8s.pod.name": "pod-1", "kernel.version": ["6.1"]}

    assert RECORD == read_span(view({**others, **FULL}))


def test_a_name_of_a_version_to_come_is_carried_on() -> None:
    found = changed("compute.kernel.future.flag", "on")

    assert isinstance(found, Trip)
    assert "on" == found.attributes["compute.kernel.future.flag"]


@pytest.mark.parametrize(
    "scope", ["", "opentelemetry.instrumentation.flask", "otel_kernels", "my.otel_kernel."]
)
def test_a_span_of_somebody_else_is_no_trip(scope: str) -> None:
    found = read_span(SpanView(scope, {"http.route": "/", "error.type": "500"}, 1, "1" * 32, "2" * 16))

    assert isinstance(found, NotATrip)
    assert repr(scope) in found.reason


@pytest.mark.parametrize("role", ["load", "parent", "stage"])
def test_a_span_of_ours_beside_trips_is_no_trip(role: str) -> None:
    found = read_span(view({semconv.ROLE: role}))

    assert isinstance(found, NotATrip)
    assert role in found.reason


def test_a_carrier_that_lost_the_scope_still_gives_trips() -> None:
    assert RECORD == read_span(replace(view(FULL), scope=""))


def test_a_span_of_ours_without_attributes_is_a_lost_trip() -> None:
    assert semconv.SESSION_ID in rejected(read_span(view({})))


def test_every_outcome_and_every_reason_to_abandon_is_read() -> None:
    for outcome in CompilationOutcome:
        trip = replace(RECORD, outcome=outcome, ir=None)
        assert trip == read_span(view(to_attributes(trip)))
    for why in Abandoned:
        trip = replace(RECORD, outcome=None, abandoned=why)
        assert trip == read_span(view(to_attributes(trip)))
