from __future__ import annotations

import re

import pytest

from otel_kernel import semconv
from otel_kernel.semconv import ATTRIBUTES, EVENTS, FAMILIES, METRICS, RECORD_ATTRIBUTES, Attribute

OWN_NAME = re.compile(r"compute\.kernel(\.[a-z0-9]+(_[a-z0-9]+)*)+").fullmatch
ENUM_VALUE = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*").fullmatch

BORROWED = {
    "code.function.name",
    "code.file.path",
    "code.line.number",
    "error.type",
    "process.pid",
    "thread.id",
}
"""OpenTelemetry's own names, which keep their meaning."""

# Everything that a trip may carry, by the part of it that it describes.
AGREED = {
    "": "name runtime layer role target device device_loaded specialization build identity phase rank world_size internal",
    "session.": "id run seq parent_seq",
    "record.": "version size length",
    "key.": "id build_id absent_reason component_other",
    "compilation.": "outcome duration_ns outcome_from abandoned id reason original_ns",
    "ir.": "text sha256 size location",
    "source.": "text sha256 size location",
    "store.": "kind location entry lookup stored reason rejected",
    "artifact.": "size",
    "members.": "names count",
}

# Everything that only records of other kinds carry.
AGREED_OF_RECORDS = {
    "session.": "label",
    "record.": "kind wall_ns body",
    "tune.": "table key checksum winner trials plan short_circuit dry_run stored",
    "batch.": "kernels threads",
    "mark.": "label",
    "memory.": "label report",
    "trial.": "name index",
}

ALL = [*ATTRIBUTES.values(), *FAMILIES.values(), *RECORD_ATTRIBUTES.values()]


def _constants() -> dict[str, str]:
    return {
        name: value
        for name, value in vars(semconv).items()
        if name.isupper() and isinstance(value, str) and value.startswith(("compute.", *BORROWED))
    }


def test_every_agreed_attribute_is_defined_and_no_other() -> None:
    agreed = {f"compute.kernel.{part}{leaf}" for part, leaves in AGREED.items() for leaf in leaves.split()}

    assert agreed | {"compute.kernel.stage_other"} | BORROWED == set(ATTRIBUTES)
    assert {"compute.kernel.key.component.", "compute.kernel.stage.", "compute.kernel.record.field."} == set(
        FAMILIES
    )


def test_every_agreed_attribute_of_records_of_other_kinds_is_defined_and_no_other() -> None:
    agreed = {
        f"compute.kernel.{part}{leaf}"
        for part, leaves in AGREED_OF_RECORDS.items()
        for leaf in leaves.split()
    }

    assert agreed == set(RECORD_ATTRIBUTES)
    assert set() == set(RECORD_ATTRIBUTES) & set(ATTRIBUTES)


def test_every_agreed_metric_is_defined_and_no_other() -> None:
    agreed = {
        "compute.kernel.compilation.duration": ("histogram", "s"),
        "compute.kernel.compilation.oldest_active": ("gauge", "s"),
        "compute.kernel.instrumentation.points": ("gauge", "{point}"),
    }

    assert agreed == {name: (metric.instrument, metric.unit) for name, metric in METRICS.items()}


def test_every_agreed_event_is_defined_and_no_other() -> None:
    assert ["compute.kernel.compilation.start"] == list(EVENTS)


def test_every_constant_of_the_module_is_registered_once() -> None:
    constants = _constants()
    registered = {
        *ATTRIBUTES,
        *RECORD_ATTRIBUTES,
        *FAMILIES,
        *METRICS,
        *EVENTS,
        semconv.POINTS_STATE,
        semconv.NAMESPACE,
    }

    assert registered == set(constants.values())
    assert len(registered) == len(constants), "two constants share a name"


@pytest.mark.parametrize("name", [*ATTRIBUTES, *RECORD_ATTRIBUTES, *METRICS, *EVENTS, semconv.POINTS_STATE])
def test_a_name_is_a_path_of_lower_case_words_under_our_prefix(name: str) -> None:
    assert OWN_NAME(name) or name in BORROWED


def test_a_family_is_a_prefix_that_ends_in_a_dot() -> None:
    assert all(OWN_NAME(prefix[:-1]) and prefix.endswith(".") for prefix in FAMILIES)


def test_no_name_is_both_leaf_and_prefix() -> None:
    leaves = [
        *ATTRIBUTES,
        *RECORD_ATTRIBUTES,
        *METRICS,
        *EVENTS,
        *(prefix[:-1] for prefix in FAMILIES),
        semconv.POINTS_STATE,
    ]

    assert [] == [(a, b) for a in leaves for b in leaves if b.startswith(a + ".")]


def test_no_attribute_falls_into_a_family() -> None:
    assert [] == [
        (name, prefix)
        for name in (*ATTRIBUTES, *RECORD_ATTRIBUTES)
        for prefix in FAMILIES
        if name.startswith(prefix)
    ]


@pytest.mark.parametrize("attribute", ALL, ids=lambda attribute: attribute.name)
def test_a_definition_is_complete_enough_for_the_tables(attribute: Attribute) -> None:
    assert attribute.when
    assert attribute.brief.endswith(".")
    assert attribute.example
    assert not attribute.unit or attribute.type is int
    assert all("|" not in text for text in (attribute.when, attribute.brief, attribute.example))


@pytest.mark.parametrize("attribute", ALL, ids=lambda attribute: attribute.name)
def test_an_example_is_a_value_that_the_attribute_may_have(attribute: Attribute) -> None:
    example = attribute.example.partition("=")[2] if attribute.family else attribute.example

    if attribute.type is int:
        assert str(int(example)) == example
    elif attribute.type is bool:
        assert example in ("true", "false")
    if attribute.values:
        assert example in attribute.values


@pytest.mark.parametrize("attribute", [each for each in ALL if each.values], ids=lambda each: each.name)
def test_enum_values_are_lower_snake_case_and_differ(attribute: Attribute) -> None:
    assert all(ENUM_VALUE(value) for value in attribute.values)
    assert len(set(attribute.values)) == len(attribute.values)


def test_metric_attributes_are_defined_and_never_kernel_or_key() -> None:
    for metric in METRICS.values():
        for name in metric.attributes:
            assert name in ATTRIBUTES or name == semconv.POINTS_STATE
            assert not name.startswith(
                (semconv.KERNEL_NAME, "compute.kernel.key.", "compute.kernel.session.")
            )


def test_event_attributes_are_defined_and_hold_no_text() -> None:
    for event in EVENTS.values():
        assert set(event.attributes) <= set(ATTRIBUTES)
        assert not {semconv.IR_TEXT, semconv.SOURCE_TEXT} & set(event.attributes)
        assert event.when
        assert event.brief.endswith(".")


def test_duration_buckets_go_from_a_millisecond_to_five_minutes_in_order() -> None:
    assert (0.001, 300.0) == (semconv.DURATION_BUCKETS[0], semconv.DURATION_BUCKETS[-1])
    assert sorted(set(semconv.DURATION_BUCKETS)) == list(semconv.DURATION_BUCKETS)


def test_definition_finds_names_and_members_of_families() -> None:
    assert ATTRIBUTES[semconv.OUTCOME] is semconv.definition(semconv.OUTCOME)
    assert FAMILIES[semconv.STAGE] is semconv.definition(semconv.STAGE + "lowering")
    assert ATTRIBUTES[semconv.STAGE_OTHER] is semconv.definition(semconv.STAGE_OTHER)
    assert semconv.definition("compute.kernel.of_a_newer_version") is None
    assert semconv.definition("http.request.method") is None
