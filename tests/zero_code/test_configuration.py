"""Declarative configuration: the options of a program come from a file."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from otlp.receiver import Receiver

from otel_kernel import environment_variables, semconv
from otel_kernel.options import Options
from otel_kernel.recording.reader import read_trips
from zero_code.launching import attributes, command, compiled

pytest.importorskip(
    "opentelemetry.configuration", reason="this OpenTelemetry has no declarative configuration"
)

PAGE = (Path(__file__).parents[2] / "docs" / "zero-code.md").read_text()
(EXAMPLE,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
UPSTREAM = "OTEL_CONFIG_FILE is set; ignoring configurator kwargs: ['auto_instrumentation_version']"
"""What OpenTelemetry says whenever it reads a file."""


def configured(receiver: Receiver, folder: Path, example: str) -> dict[str, str]:
    """Write a configuration file, and return the variables that make the command read it."""
    path = folder / "otel.yaml"
    path.write_text(example)
    return {"OTEL_CONFIG_FILE": str(path), "COLLECTOR": f"http://127.0.0.1:{receiver.http_port}"}


def acme(**options: Any) -> str:
    """Return the page's example with these options for acme, and none for Numba."""
    example = yaml.safe_load(EXAMPLE)
    example["instrumentation/development"]["python"] = {"kernel_acme": options}
    return json.dumps(example)  # which is YAML, too


def said(stderr: str) -> list[str]:
    """Return the lines of a program's stderr that are not said of every file."""
    return [line for line in stderr.splitlines() if line != UPSTREAM]


def test_the_example_of_the_page_is_what_it_says(receiver: Receiver, tmp_path: Path) -> None:
    changes = configured(receiver, tmp_path, EXAMPLE)
    done = command(["numba_kernel.py"], receiver, folder=tmp_path, changes=changes)
    (trip,) = receiver.trips
    found = attributes(trip)

    assert (0, []) == (done.returncode, said(done.stderr))
    assert "__main__.kernel" == found[semconv.KERNEL_NAME]
    assert semconv.IR_TEXT in found
    assert "startup" == found[semconv.PHASE]
    assert [semconv.START_EVENT] == [
        event.event_name for scope, event in receiver.logs if scope.name == "otel_kernel.numba"
    ]
    assert set(semconv.METRICS) == {
        metric.name for scope, metric in receiver.metrics if scope.name == "otel_kernel"
    }


def test_the_file_wins_over_variables_and_leaves_what_it_does_not_name(
    receiver: Receiver, tmp_path: Path, acme_variables: dict[str, str]
) -> None:
    changes = {
        **acme_variables,
        **configured(receiver, tmp_path, acme(level="full")),
        "OTEL_KERNEL_LEVEL": "off",
        "OTEL_KERNEL_INLINE_LIMIT": "3",
    }
    done = command(["acme_kernel.py"], receiver, folder=tmp_path, changes=changes)
    (trip,) = receiver.trips
    found = attributes(trip)

    assert (0, []) == (done.returncode, said(done.stderr))
    assert "none" == found[semconv.SOURCE_LOCATION], "level full, and longer than 3 bytes"


def test_every_option_may_stand_in_the_file(
    receiver: Receiver, tmp_path: Path, acme_variables: dict[str, str]
) -> None:
    with Receiver() as other:
        options: dict[str, Any] = {
            "level": "full",
            "inline_limit": 3,
            "text_files": str(tmp_path / "texts"),
            "recording": str(tmp_path / "trips.db"),
            "otlp": other.endpoint("grpc"),
            "serving_after": 0,
            "start_events": True,
        }
        changes = {**acme_variables, **configured(receiver, tmp_path, acme(**options))}
        done = command(["acme_kernel.py"], receiver, folder=tmp_path, changes=changes)
        elsewhere = compiled(other)
    (trip,) = receiver.trips
    found = attributes(trip)

    assert {each.name for each in fields(Options)} == set(options)
    assert (0, []) == (done.returncode, said(done.stderr))
    assert ("file", "serving") == (found[semconv.SOURCE_LOCATION], found[semconv.PHASE])
    assert 2 == len(list((tmp_path / "texts").rglob("*.gz"))), "ir and source"
    assert ["acme.kernel"] == [each.kernel for each in read_trips(tmp_path / "trips.db")]
    assert ["kernel"] == elsewhere
    assert [semconv.START_EVENT] == [
        event.event_name for scope, event in receiver.logs if scope.name == "otel_kernel.acme"
    ]


def test_code_wins_over_the_file(receiver: Receiver, tmp_path: Path, acme_variables: dict[str, str]) -> None:
    changes = {**acme_variables, **configured(receiver, tmp_path, acme(level="full", inline_limit=3))}
    done = command(["acme_kernel.py", "basic"], receiver, folder=tmp_path, changes=changes)
    (trip,) = receiver.trips
    found = attributes(trip)

    assert (0, []) == (done.returncode, said(done.stderr))
    assert semconv.SOURCE_LOCATION not in found, "level basic"


def test_bad_and_unknown_options_are_a_line_each_and_the_others_hold(
    receiver: Receiver, tmp_path: Path, acme_variables: dict[str, str]
) -> None:
    example = acme(level="loud", levels="full", inline_limit="64k", serving_after=0)
    changes = {**acme_variables, **configured(receiver, tmp_path, example), "OTEL_KERNEL_LEVEL": "full"}
    done = command(["acme_kernel.py"], receiver, folder=tmp_path, changes=changes)
    (trip,) = receiver.trips
    found = attributes(trip)

    assert 0 == done.returncode
    assert [
        "option levels is ignored: the options are",
        "option inline_limit is ignored: inline_limit must be an int of bytes from 0, got '64k'",
        "option level is ignored: level must be one of off, basic, full, got 'loud'",
    ] == [line.partition(" are ")[0] + " are" if "levels" in line else line for line in said(done.stderr)]
    assert "serving" == found[semconv.PHASE]
    assert "the text of the kernel" == found[semconv.SOURCE_TEXT]


@pytest.mark.parametrize("level", ["off", "'off'"])
def test_level_off_may_be_written_without_quotes(
    receiver: Receiver, tmp_path: Path, acme_variables: dict[str, str], level: str
) -> None:
    example = acme(level="LEVEL").replace('"LEVEL"', level)
    changes = {**acme_variables, **configured(receiver, tmp_path, example)}
    done = command(["acme_kernel.py"], receiver, folder=tmp_path, changes=changes)

    assert (0, []) == (done.returncode, said(done.stderr))
    assert [] == receiver.trips


def test_what_the_page_says_of_enabled(
    receiver: Receiver, tmp_path: Path, acme_variables: dict[str, str]
) -> None:
    changes = {**acme_variables, **configured(receiver, tmp_path, acme(enabled=False))}
    enabled = command(["acme_kernel.py"], receiver, folder=tmp_path, changes=changes)
    changes["OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"] = "kernel_acme"
    disabled = command(["acme_kernel.py"], receiver, folder=tmp_path, changes=changes)

    assert (0, 0) == (enabled.returncode, disabled.returncode)
    assert ["kernel"] == compiled(receiver)


@pytest.mark.parametrize(
    "variable", [name for name in vars(environment_variables) if name.startswith("OTEL_")]
)
def test_the_page_tells_of_every_variable_and_its_flag(variable: str) -> None:
    flag = f"--{variable.removeprefix('OTEL_').lower()}"

    assert 1 == PAGE.count(f"| `{variable}` | `{flag}` |")
