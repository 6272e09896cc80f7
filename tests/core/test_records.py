from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from otel_kernel import semconv
from otel_kernel.records import (
    Abandoned,
    CompilationOutcome,
    CompilationRecord,
    KernelCacheKey,
    Record,
    RecordLevel,
    Session,
    TextDigest,
    Trip,
    TripJson,
    TruncatedText,
    escape,
)

SHA256 = hashlib.sha256(b"whole text").hexdigest()
SESSION = Session(id="0f" * 16, run="a0" * 16)
KEY = KernelCacheKey(id=2**128 - 1, build_id=0)
OUTCOMES = list(CompilationOutcome)

# Constructors with a good value for every field.
RECORD: dict[str, Any] = {
    "kernel": "shop.pricing.discount",
    "key": KEY,
    "ir": "label 0:",
    "outcome": CompilationOutcome.COMPILED,
    "duration": 1_200_345_678,
    "source": "define i32 @f",
}
TRIP: dict[str, Any] = {
    "session": SESSION,
    "seq": 12,
    "parent_seq": 11,
    "runtime": "acme",
    "layer": "acme.graph",
    "kernel": "shop.pricing.discount",
    "started_ns": 1_700_000_000_000_000_000,
    "duration_ns": 1_200_345_678,
    "outcome": CompilationOutcome.COMPILED,
    "key": KEY,
    "ir": TextDigest(SHA256, 10),
    "source": TruncatedText("wh", SHA256, 10),
    "trace_id": "1" * 32,
    "span_id": "2" * 16,
    "attributes": {semconv.TARGET: "cuda:90", semconv.STORE_STORED: True, semconv.ARTIFACT_SIZE: 7},
}
FAILED = TRIP | {"outcome": None, "error_type": "ValueError", "message": "ValueError at f.py:3"}
ABANDONED = TRIP | {"outcome": None, "abandoned": Abandoned.RETRY}
UNFINISHED = TRIP | {"outcome": None, "duration_ns": None}


def record(**changes: Any) -> CompilationRecord:
    return CompilationRecord(**(RECORD | changes))


def trip(**changes: Any) -> Trip:
    return Trip(**(TRIP | changes))


VALUES: list[Any] = [
    SESSION,
    KEY,
    TextDigest(SHA256, 10),
    TruncatedText("wh", SHA256, 10),
    record(),
    trip(),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_frozen_and_slotted(value: Any) -> None:
    name = dataclasses.fields(value)[0].name

    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, None)
    assert not hasattr(value, "__dict__")


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_equal_by_value(value: Any) -> None:
    same = dataclasses.replace(value)

    assert value == same
    assert value is not same
    assert repr(value) == repr(same)


def _pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, _pickled])
@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_can_be_copied_and_pickled(value: Any, again: Callable[[Any], Any]) -> None:
    assert value == again(value)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, _pickled])
def test_a_copy_of_a_trip_has_attributes_that_nobody_can_change(again: Callable[[Any], Any]) -> None:
    made = again(trip(attributes={semconv.TARGET: "cuda:90"}))

    assert "cuda:90" == made.attributes[semconv.TARGET]
    with pytest.raises(TypeError):
        made.attributes[semconv.TARGET] = "changed"


@pytest.mark.parametrize("name", RECORD)
def test_records_that_differ_in_one_field_differ(name: str) -> None:
    other: dict[str, Any] = {
        "kernel": "shop.pricing.tax",
        "key": KernelCacheKey(id=2**128 - 1, build_id=1),
        "ir": "label 1:",
        "outcome": CompilationOutcome.REKEYED,
        "duration": 1_200_345_679,
        "source": TruncatedText("define i32 @f", SHA256, 14),
    }

    assert record() != record(**{name: other[name]})


def test_keys_records_sessions_and_texts_can_be_in_sets() -> None:
    assert 1 == len({KEY, dataclasses.replace(KEY)})
    assert 1 == len({record(), record()})
    assert 1 == len({SESSION, dataclasses.replace(SESSION)})
    assert 2 == len({TextDigest(SHA256, 10), TruncatedText("", SHA256, 10)})


def test_attributes_of_a_trip_are_a_copy_that_nobody_can_change() -> None:
    mine: dict[str, Any] = {semconv.TARGET: "cuda:90"}
    made = trip(attributes=mine)
    mine[semconv.TARGET] = "changed"

    assert "cuda:90" == made.attributes[semconv.TARGET]
    with pytest.raises(TypeError):
        made.attributes[semconv.TARGET] = "changed"  # type: ignore[index] # pyright: ignore[reportIndexIssue] - the point


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        *((record, "kernel", value) for value in ("", None, 3, b"x", "a\ud800")),
        *((record, "key", value) for value in ("00", (1, 2), 3)),
        *((record, "ir", value) for value in (3, b"x", "a\ud800", TextDigest(SHA256, 10))),
        *((record, "source", value) for value in (3, b"x", "a\ud800", TextDigest(SHA256, 10))),
        *((record, "outcome", value) for value in (None, "compiled", "Compiled", 1)),
        *((record, "duration", value) for value in (None, -1, 2**63, 1.0, True, "1")),
        *((trip, "session", value) for value in (None, "0f" * 16)),
        *((trip, "seq", value) for value in (-1, 2**63, None, 1.0, True)),
        *((trip, "parent_seq", value) for value in (-1, 12, 13, 1.0, False)),
        *(
            (trip, name, value)
            for name in ("runtime", "layer", "kernel")
            for value in ("", None, 3, "\ud800")
        ),
        *((trip, "started_ns", value) for value in (-1, 2**63, None, 1.0)),
        *((trip, "duration_ns", value) for value in (-1, 2**63, 1.0, True)),
        *((trip, "outcome", value) for value in ("compiled", 1)),
        *((trip, "abandoned", value) for value in ("retry", 1)),
        *((trip, "key", value) for value in ("00", 3)),
        *((trip, name, value) for name in ("ir", "source") for value in (3, b"x", "\ud800")),
        *((trip, "error_type", value) for value in (ValueError, "\ud800")),
        *((trip, "message", value) for value in (3, "\ud800", "", "a message without an error")),
        *((trip, "trace_id", value) for value in ("1" * 31, "1" * 33, "A" * 32, "", 1)),
        *((trip, "span_id", value) for value in ("2" * 15, "2" * 17, "A" * 16, "", 1)),
        (trip, "ir", "a text"),
    ],
)
def test_a_bad_field_is_named_with_its_value(make: Callable[..., object], name: str, value: Any) -> None:
    loaded = {"outcome": CompilationOutcome.LOADED} if value == "a text" else {}

    with pytest.raises(ValueError) as caught:
        make(**{name: value}, **loaded)
    assert f".{name} must be " in str(caught.value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", [None, 1.5, b"x", "\ud800", 2**63, -(2**63) - 1, ["x"]])
def test_a_bad_attribute_is_named_with_its_value(value: Any) -> None:
    with pytest.raises(ValueError) as caught:
        trip(attributes={semconv.TARGET: value})

    assert f"Trip.attributes['{semconv.TARGET}'] must be" in str(caught.value)
    assert repr(value) in str(caught.value)


PARTS: list[tuple[Callable[[Any], object], str]] = [
    (lambda value: KernelCacheKey(id=value, build_id=0), "KernelCacheKey.id"),
    (lambda value: KernelCacheKey(id=0, build_id=value), "KernelCacheKey.build_id"),
    (lambda value: KernelCacheKey.from_hex(id=value, build_id="0" * 32), "KernelCacheKey.id"),
    (lambda value: KernelCacheKey.from_hex(id="0" * 32, build_id=value), "KernelCacheKey.build_id"),
    (lambda value: Session(id=value, run="0" * 32), "Session.id"),
    (lambda value: Session(id="0" * 32, run=value), "Session.run"),
    (lambda value: TextDigest(value, 1), "TextDigest.sha256"),
    (lambda value: TextDigest(SHA256, value), "TextDigest.size"),
    (lambda value: TruncatedText("", value, 1), "TruncatedText.sha256"),
    (lambda value: TruncatedText("", SHA256, value), "TruncatedText.size"),
    (lambda value: TruncatedText(value, SHA256, 10), "TruncatedText.prefix"),
]


@pytest.mark.parametrize(("make", "name"), PARTS)
@pytest.mark.parametrize("value", [-1, 2**128, 1.0, True, None, b"00", "\ud800"])
def test_a_bad_part_is_named_with_its_value(make: Callable[[Any], object], name: str, value: Any) -> None:
    with pytest.raises(ValueError) as caught:
        make(value)

    assert str(caught.value).startswith(f"{name} must be ")
    assert repr(value) in str(caught.value)


def test_a_long_bad_value_is_not_printed_whole() -> None:
    with pytest.raises(ValueError) as caught:
        trip(trace_id="x" * 1_000_000)

    assert 400 > len(str(caught.value))


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"error_type": "ValueError"}, "outcome"),
        ({"abandoned": Abandoned.NESTED}, "outcome"),
        ({"outcome": None, "error_type": "ValueError", "abandoned": Abandoned.NESTED}, "outcome"),
        ({"outcome": None}, "duration_ns"),
        ({"duration_ns": None}, "duration_ns"),
        ({"outcome": None, "abandoned": Abandoned.NESTED, "duration_ns": None}, "duration_ns"),
    ],
)
def test_a_trip_has_exactly_one_end_and_then_a_duration(changes: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=rf"Trip\.{name} must be"):
        trip(**changes)


@pytest.mark.parametrize(
    ("fields", "state"),
    [(TRIP, "record"), (FAILED, "failed"), (ABANDONED, "abandoned"), (UNFINISHED, "unfinished")],
)
def test_state_says_how_a_trip_ended_and_only_a_good_end_has_a_record(
    fields: dict[str, Any], state: str
) -> None:
    made = Trip(**fields)

    assert state == made.state
    assert (state == "record") is (made.record is not None)


def test_a_record_holds_texts_and_cut_texts_but_no_digests() -> None:
    expected = record(ir=None, source=TruncatedText("wh", SHA256, 10))

    assert expected == trip().record
    assert record() == trip(ir=RECORD["ir"], source=RECORD["source"]).record


def test_records_are_of_kind_compilation() -> None:
    kind: type[Record] = CompilationRecord

    assert "compilation" == kind.KIND
    assert "records/v1/compilation" == kind.namespace()
    assert ("kernel", "key", "ir", "outcome", "duration", "source") == tuple(RECORD)
    assert tuple(RECORD) == tuple(field.name for field in dataclasses.fields(CompilationRecord))


def test_enums_have_the_agreed_values() -> None:
    assert ["compiled", "loaded", "rekeyed"] == [each.value for each in CompilationOutcome]
    assert ["off", "basic", "full"] == [each.value for each in RecordLevel]
    assert {"retry", "nested", "tuning"} < {each.value for each in Abandoned}


def test_a_key_of_texts_is_blake2b_of_each_big_endian() -> None:
    key = KernelCacheKey.of_texts(build="acme 1.2; sm_90", rest="f(float64)")
    expected = hashlib.blake2b(b"f(float64)", digest_size=16).hexdigest()
    expected_build = hashlib.blake2b(b"acme 1.2; sm_90", digest_size=16).hexdigest()

    assert {"id": expected, "build_id": expected_build} == key.to_json()
    assert KernelCacheKey.from_hex(**key.to_json()) == key
    assert {"id": "f" * 32, "build_id": "0" * 32} == KEY.to_json()


def test_a_key_of_a_lone_surrogate_is_that_of_its_escape() -> None:
    assert KernelCacheKey.of_texts(build="\\ud800", rest="") == KernelCacheKey.of_texts(
        build="\ud800", rest=""
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", ""), ("a\0b", "a\0b"), ("é\U0001f600", "é\U0001f600"), ("a\ud800b\udfff", r"a\ud800b\udfff")],
)
def test_escape_changes_lone_surrogates_only(text: str, expected: str) -> None:
    assert expected == escape(text)


@pytest.mark.parametrize(
    "fields", [TRIP, FAILED, ABANDONED, UNFINISHED], ids=["record", "failed", "abandoned", "unfinished"]
)
def test_a_trip_comes_back_from_json(fields: dict[str, Any]) -> None:
    made = Trip(**fields)
    line = json.dumps(made.to_json())

    assert made == Trip.from_json(json.loads(line))
    assert TripJson.__annotations__.keys() == json.loads(line).keys()


@pytest.mark.parametrize("ir", [None, "", "a\0b", TextDigest(SHA256, 10), TruncatedText("", SHA256, 10)])
def test_every_form_of_a_text_comes_back_from_json(ir: Any) -> None:
    made = trip(ir=ir)

    assert made == Trip.from_json(json.loads(json.dumps(made.to_json())))


@pytest.mark.parametrize("name", TripJson.__annotations__)
def test_json_without_a_field_names_it(name: str) -> None:
    data: dict[str, Any] = dict(trip().to_json())
    del data[name]

    with pytest.raises(ValueError, match=rf"Trip\.json must be an object with the fields \['{name}'\]"):
        Trip.from_json(data)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", None),
        ("outcome", "Compiled"),
        ("outcome", []),
        ("abandoned", "gave up"),
        ("state", "failed"),
        ("key", {"id": "0" * 32}),
        ("key", "0" * 32),
        ("key", []),
        ("ir", {"truncated": "x"}),
        ("ir", []),
        ("ir", "a text beside its digest"),
        ("source_digest", {"sha256": SHA256}),
        ("source_digest", SHA256),
        ("attributes", []),
        ("attributes", None),
        ("seq", "12"),
        ("duration_ns", 1.5),
    ],
)
def test_json_with_a_bad_field_names_it(name: str, value: Any) -> None:
    data: dict[str, Any] = dict(trip().to_json()) | {name: value}

    with pytest.raises(ValueError, match=rf"(Trip|KernelCacheKey)\.{name}\b"):
        Trip.from_json(data)


@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_json_that_is_no_object_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"Trip\.json must be an object"):
        Trip.from_json(value)


def test_json_with_an_unknown_field_names_it() -> None:
    data: dict[str, Any] = dict(trip().to_json()) | {"durationNs": 1}

    with pytest.raises(ValueError, match="durationNs"):
        Trip.from_json(data)


@pytest.mark.parametrize("prefix", ["whole text", "whole text and more", "ééééé"])
def test_a_text_that_is_not_shorter_than_its_whole_is_not_truncated(prefix: str) -> None:
    with pytest.raises(ValueError, match=r"TruncatedText\.prefix must be shorter than the 10 bytes"):
        TruncatedText(prefix, SHA256, 10)
