from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from otel_kernel.options import (
    NAMES,
    VARIABLE_PREFIX,
    Configuration,
    OptionError,
    Options,
    from_environment,
    merge,
)
from otel_kernel.otlp import check_endpoint
from otel_kernel.records import RecordLevel

GOOD: list[tuple[str, str, object]] = [
    ("level", "off", RecordLevel.OFF),
    ("level", "basic", RecordLevel.BASIC),
    ("level", "full", RecordLevel.FULL),
    ("inline_limit", "0", 0),
    ("inline_limit", "1000000", 1_000_000),
    ("text_files", "/var/texts", Path("/var/texts")),
    ("recording", "trips.db", Path("trips.db")),
    ("otlp", "http://127.0.0.1:4318", "http://127.0.0.1:4318"),
    ("serving_after", "0", 0.0),
    ("serving_after", "12.5", 12.5),
    ("start_events", "true", True),
    ("start_events", "TRUE", True),
    ("start_events", "false", False),
]
BAD: list[tuple[str, str]] = [
    ("level", "FULL"),
    ("level", "verbose"),
    ("inline_limit", "-1"),
    ("inline_limit", "64k"),
    ("inline_limit", "1.5"),
    ("otlp", "127.0.0.1:4318"),
    ("otlp", "ftp://127.0.0.1"),
    ("otlp", "http://127.0.0.1:port"),
    ("otlp", "http://"),
    ("serving_after", "-1"),
    ("serving_after", "soon"),
    ("serving_after", "nan"),
    ("serving_after", "inf"),
    ("start_events", "yes"),
    ("start_events", "1"),
]
BAD_IN_CODE: list[tuple[str, object]] = [
    ("level", None),
    ("level", 1),
    ("inline_limit", None),
    ("inline_limit", True),
    ("inline_limit", 1.0),
    ("text_files", ""),
    ("text_files", 3),
    ("recording", ""),
    ("recording", b"trips.db"),
    ("otlp", ""),
    ("serving_after", True),
    ("serving_after", "1"),
    ("start_events", None),
    ("start_events", 1),
]


def _subject(name: str) -> str:
    return "OTLP endpoint" if name == "otlp" else f"{name} must be"


def test_defaults_are_level_basic_and_nothing_written() -> None:
    expected = Options(
        level=RecordLevel.BASIC,
        inline_limit=65536,
        text_files=None,
        recording=None,
        otlp=None,
        serving_after=None,
        start_events=False,
    )

    assert expected == Options()
    assert expected == from_environment({})


@pytest.mark.parametrize(("name", "text", "value"), GOOD)
def test_each_option_is_read_from_the_environment(name: str, text: str, value: object) -> None:
    found = from_environment({VARIABLE_PREFIX + name.upper(): text})

    assert value == getattr(found, name)
    assert {name} >= {each for each in NAMES if getattr(found, each) != getattr(Options(), each)}


def test_every_option_has_a_test_value() -> None:
    assert set(NAMES) == {name for name, _, _ in GOOD}


@pytest.mark.parametrize(("name", "text"), BAD)
def test_a_bad_variable_is_logged_once_and_its_default_taken(
    caplog: pytest.LogCaptureFixture, name: str, text: str
) -> None:
    variable = VARIABLE_PREFIX + name.upper()
    found = from_environment({variable: text, "OTEL_KERNEL_TEXT_FILES": "/var/texts"})

    assert Options(text_files="/var/texts") == found
    (record,) = caplog.records
    assert logging.ERROR == record.levelno
    assert variable in record.message
    assert text in record.message
    assert _subject(name) in record.message


def test_an_empty_variable_counts_as_unset(caplog: pytest.LogCaptureFixture) -> None:
    found = from_environment({VARIABLE_PREFIX + name.upper(): "" for name in NAMES})

    assert Options() == found
    assert [] == caplog.records


def test_a_variable_of_no_option_is_none_of_ours() -> None:
    assert Options() == from_environment({"OTEL_KERNEL_RUN": "0" * 32, "OTEL_KERNEL_SOMETHING": "x"})


@pytest.mark.parametrize(("name", "value"), BAD_IN_CODE)
def test_a_bad_value_in_code_is_named(name: str, value: Any) -> None:
    with pytest.raises(OptionError) as caught:
        Options(**{name: value})

    assert _subject(name) in str(caught.value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(("name", "value"), BAD_IN_CODE)
def test_merging_leaves_a_bad_value_out_and_says_so_once(
    caplog: pytest.LogCaptureFixture, name: str, value: object
) -> None:
    before = Options(level="full", inline_limit=7)
    found = merge(before, {name: value, "serving_after": 3} if name != "serving_after" else {name: value})

    assert before.level == found.level
    assert before.inline_limit == found.inline_limit
    assert (None if name == "serving_after" else 3) == found.serving_after
    (record,) = caplog.records
    assert f"option {name} is ignored" in record.message


def test_merging_changes_what_is_given_and_keeps_the_rest() -> None:
    found = merge(Options(level="full", inline_limit=7), {"level": "off", "text_files": Path("texts")})

    assert Options(level="off", inline_limit=7, text_files=Path("texts")) == found


def test_an_unknown_option_is_logged_with_those_there_are(caplog: pytest.LogCaptureFixture) -> None:
    assert Options() == merge(Options(), {"levels": "full"})
    (record,) = caplog.records
    assert "option levels is ignored" in record.message
    assert all(name in record.message for name in NAMES)


def test_an_option_can_be_taken_back() -> None:
    assert Options() == merge(
        Options(otlp="http://h:4318", recording="x", serving_after=1),
        dict.fromkeys(["otlp", "recording", "serving_after"]),
    )


@pytest.mark.parametrize(
    ("url", "protocol", "endpoint"),
    [
        ("http://127.0.0.1:4317", "grpc", "http://127.0.0.1:4317"),
        ("https://otel.example:4317", "grpc", "https://otel.example:4317"),
        ("grpc://127.0.0.1:9000", "grpc", "http://127.0.0.1:9000"),
        ("http://127.0.0.1:4318", "http/protobuf", "http://127.0.0.1:4318/v1/traces"),
        ("http://127.0.0.1:4318/", "http/protobuf", "http://127.0.0.1:4318/v1/traces"),
        ("https://otel.example", "http/protobuf", "https://otel.example/v1/traces"),
        (
            "https://otel.example/otlp/v1/traces?k=v",
            "http/protobuf",
            "https://otel.example/otlp/v1/traces?k=v",
        ),
        ("http://[::1]:4318", "http/protobuf", "http://[::1]:4318/v1/traces"),
        ("HTTP://[::1]:4317", "grpc", "http://[::1]:4317"),
    ],
)
def test_an_endpoint_tells_its_protocol(url: str, protocol: str, endpoint: str) -> None:
    assert (protocol, endpoint) == check_endpoint(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:4318",
        "localhost:4317",
        "http://",
        "http://:4318",
        "ftp://h:1",
        "http://h:x",
        "http://h:99999",
        "http://[::1",
    ],
)
def test_a_bad_endpoint_is_named(url: str) -> None:
    with pytest.raises(ValueError, match="OTLP endpoint") as caught:
        check_endpoint(url)

    assert repr(url) in str(caught.value)


def test_a_configuration_file_sets_what_it_names() -> None:
    kept = Configuration(level="full", serving_after=3)

    assert dataclasses.is_dataclass(Configuration)
    assert {"level": "full", "serving_after": 3} == {
        name: value for name, value in dataclasses.asdict(kept).items() if value is not None
    }
    assert set(NAMES) == {field.name for field in dataclasses.fields(kept)}


def test_a_configuration_file_may_say_off_as_yaml_reads_it() -> None:
    kept = dataclasses.asdict(Configuration(**yaml.safe_load("level: off")))

    assert RecordLevel.OFF is kept["level"]


def test_an_unknown_option_in_a_configuration_file_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    kept = Configuration(level="full", levels="off")

    assert {"level"} == {name for name, value in dataclasses.asdict(kept).items() if value is not None}
    (record,) = caplog.records
    assert "option levels is ignored" in record.message
