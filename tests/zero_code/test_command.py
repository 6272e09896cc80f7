"""`opentelemetry-instrument`, the real command, with the SDK's own exporters."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from otlp.receiver import Protocol, Receiver
from otlp.views import attributes_of, views_of

from otel_kernel import environment_variables, semconv
from otel_kernel.mapping import read_span
from otel_kernel.options import NAMES, VARIABLE_PREFIX
from otel_kernel.records import CompilationOutcome, Trip
from otel_kernel.zero_code import DISABLED_VARIABLE
from zero_code.launching import ALL_DISABLED, EVENTS, attributes, command, compiled


def test_a_program_is_instrumented_without_a_change(
    receiver: Receiver, protocol: Protocol, tmp_path: Path
) -> None:
    done = command(["numba_kernel.py"], receiver, folder=tmp_path, protocol=protocol)
    (trip,) = [read_span(view) for arrived in receiver.trace_requests for view in views_of(arrived)]

    assert (0, "imported:\n2\n", "") == (done.returncode, done.stdout, done.stderr)
    assert isinstance(trip, Trip)
    assert ("__main__.kernel", CompilationOutcome.COMPILED) == (trip.kernel, trip.outcome)


def test_measurements_arrive_too(receiver: Receiver, protocol: Protocol, tmp_path: Path) -> None:
    command(["numba_kernel.py"], receiver, folder=tmp_path, protocol=protocol)
    metrics = {metric.name: metric for scope, metric in receiver.metrics if scope.name == "otel_kernel"}
    points = {
        attributes_of(point.attributes)[semconv.POINTS_STATE]: point.as_int
        for point in metrics[semconv.POINTS_METRIC].gauge.data_points
    }

    assert set(semconv.METRICS) == set(metrics)
    assert 1 == metrics[semconv.DURATION_METRIC].histogram.data_points[0].count
    assert 0 == metrics[semconv.OLDEST_ACTIVE_METRIC].gauge.data_points[0].as_double
    assert {"patched", "missing"} == points.keys()
    assert 0 < points["patched"]
    assert 0 == points["missing"]


@pytest.mark.parametrize(
    "names",
    ["kernel_numba", "requests, kernel_numba ,flask", pytest.param("*", marks=ALL_DISABLED)],
)
def test_an_instrumentor_can_be_disabled_by_name(receiver: Receiver, tmp_path: Path, names: str) -> None:
    done = command(["numba_kernel.py"], receiver, folder=tmp_path, changes={DISABLED_VARIABLE: names})

    assert (0, "imported:\n2\n", "") == (done.returncode, done.stdout, done.stderr)
    assert [] == receiver.trips


def test_disabling_one_leaves_the_others(receiver: Receiver, tmp_path: Path) -> None:
    done = command(["numba_kernel.py"], receiver, folder=tmp_path, changes={DISABLED_VARIABLE: "kernel_jax"})

    assert "" == done.stderr
    assert ["kernel"] == compiled(receiver)


def test_a_program_that_uses_no_runtime_pays_no_import(receiver: Receiver, tmp_path: Path) -> None:
    others = {DISABLED_VARIABLE: "sqlite3"}  # OpenTelemetry's own instrumentor of it imports it
    done = command(["nothing.py"], receiver, folder=tmp_path, changes=others)

    assert (0, "") == (done.returncode, done.stderr)
    assert "runtimes:\nours:\ninstrumented: True\nthreads: []\n" == done.stdout
    assert [] == receiver.trips


# Options.


def test_every_option_has_a_variable_and_a_flag() -> None:
    constants = {
        name: value for name, value in vars(environment_variables).items() if name.startswith("OTEL_")
    }

    assert {VARIABLE_PREFIX + name.upper() for name in NAMES} == set(constants)
    assert list(constants) == list(constants.values())


@EVENTS
@pytest.mark.parametrize("by", ["variables", "flags"])
def test_every_option_is_set_without_a_change_of_the_program(
    receiver: Receiver, tmp_path: Path, acme_variables: dict[str, str], by: str
) -> None:
    with Receiver() as other:
        options = {
            "level": "full",
            "inline_limit": "3",
            "text_files": str(tmp_path / "texts"),
            "recording": str(tmp_path / "trips.db"),
            "otlp": other.endpoint("grpc"),
            "serving_after": "0",
            "start_events": "true",
        }
        assert set(NAMES) == set(options)
        variables = {VARIABLE_PREFIX + name.upper(): value for name, value in options.items()}
        flags = [part for name, value in options.items() for part in (f"--kernel_{name}", value)]
        done = command(
            ["acme_kernel.py"],
            receiver,
            folder=tmp_path,
            flags=flags if by == "flags" else (),
            changes={**acme_variables, **(variables if by == "variables" else {})},
        )
        elsewhere = compiled(other)
    (trip,) = receiver.trips
    found = attributes(trip)
    ((scope, event),) = [log for log in receiver.logs if log[1].event_name == semconv.START_EVENT]
    with closing(sqlite3.connect(tmp_path / "trips.db")) as connection:
        recorded = connection.execute("SELECT kernel, phase FROM records").fetchall()

    assert (0, "") == (done.returncode, done.stderr)
    assert "file" == found[semconv.SOURCE_LOCATION]
    assert "serving" == found[semconv.PHASE]
    assert 2 == len(list((tmp_path / "texts").rglob("*.gz"))), "ir and source"
    assert [("acme.kernel", "serving")] == recorded
    assert ["kernel"] == elsewhere
    assert "otel_kernel.acme" == scope.name
    assert (trip.span.trace_id, trip.span.span_id) == (event.trace_id, event.span_id)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("LEVEL", "loud", "level must be one of off, basic, full, got 'loud'"),
        ("INLINE_LIMIT", "64k", "inline_limit must be a number, got '64k'"),
        ("OTLP", "localhost:4317", "OTLP endpoint 'localhost:4317' must be like"),
        ("SERVING_AFTER", "-1", "serving_after must be seconds from 0, got -1.0"),
        ("START_EVENTS", "yes", "start_events must be true or false, got 'yes'"),
    ],
)
def test_a_bad_variable_is_one_line_and_its_default_is_taken(
    receiver: Receiver, tmp_path: Path, acme_variables: dict[str, str], name: str, value: str, said: str
) -> None:
    variable = VARIABLE_PREFIX + name
    done = command(["acme_kernel.py"], receiver, folder=tmp_path, changes={**acme_variables, variable: value})

    assert 0 == done.returncode
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{variable} is ignored: {said}")
    assert ["kernel"] == compiled(receiver)
    assert semconv.SOURCE_TEXT not in attributes(receiver.trips[0])


def test_a_recording_that_cannot_be_written_is_one_line(
    receiver: Receiver, tmp_path: Path, acme_variables: dict[str, str]
) -> None:
    changes = {**acme_variables, "OTEL_KERNEL_RECORDING": str(tmp_path)}
    done = command(["acme_kernel.py"], receiver, folder=tmp_path, changes=changes)

    assert 0 == done.returncode
    (line,) = done.stderr.splitlines()
    assert str(tmp_path) in line
    assert ["kernel"] == compiled(receiver)


def test_code_wins_over_variables(receiver: Receiver, tmp_path: Path, acme_variables: dict[str, str]) -> None:
    changes = {**acme_variables, "OTEL_KERNEL_LEVEL": "off"}
    done = command(["acme_kernel.py", "full"], receiver, folder=tmp_path, changes=changes)
    (trip,) = receiver.trips

    assert (0, "") == (done.returncode, done.stderr)
    assert "the text of the kernel" == attributes(trip)[semconv.SOURCE_TEXT]
