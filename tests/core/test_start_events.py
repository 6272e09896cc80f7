"""The log event at the start of a trip."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from acme_instrumentor import instrumentor
from checks import ends, failing, messages
from opentelemetry import trace
from opentelemetry._logs import Logger, SeverityNumber
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from telemetry import Telemetry

import otel_kernel
from otel_kernel import pipeline, semconv, session

pytestmark = [
    pytest.mark.usefixtures("nothing_left_behind"),
    pytest.mark.skipif(
        "event_name" not in inspect.signature(Logger.emit).parameters,
        reason="this OpenTelemetry has no events",
    ),
]


class Logs(LogRecordProcessor):
    """A logger provider of the program, and what it was handed."""

    def __init__(self) -> None:
        self.provider = LoggerProvider(shutdown_on_exit=False)
        self.provider.add_log_record_processor(self)
        self.records: list[Any] = []

    def on_emit(self, log_record: Any) -> None:
        """Keep a record, with its scope."""
        self.records.append(log_record)

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Do nothing."""
        return True

    @property
    def kernels(self) -> list[str]:
        """The kernels of all events, in order."""
        return [each.log_record.attributes[semconv.KERNEL_NAME] for each in self.records]


@pytest.fixture
def logs(telemetry: Telemetry) -> Iterator[Logs]:
    """The program's loggers; its spans are in `telemetry`."""
    assert telemetry is not None
    made = Logs()
    yield made
    made.provider.shutdown()


def test_by_default_there_is_no_event(acme: Any, logs: Logs) -> None:
    instrumentor().instrument(logger_provider=logs.provider)
    acme.build("f")

    assert [] == logs.records


def test_an_event_tells_of_a_trip_while_it_runs(acme: Any, telemetry: Telemetry, logs: Logs) -> None:
    instrumentor().instrument(logger_provider=logs.provider, start_events=True, serving_after=0)
    seen: list[int] = []
    acme.build("f", lambda: seen.append(len(logs.records)))
    (event,) = logs.records
    context = telemetry.spans[0].get_span_context()
    assert context is not None
    record = event.log_record

    assert [1] == seen
    assert "compute.kernel.compilation.start" == record.event_name
    assert SeverityNumber.INFO is record.severity_number
    assert "compile acme.f" == record.body
    assert ("otel_kernel.acme", otel_kernel.__version__) == (
        event.instrumentation_scope.name,
        event.instrumentation_scope.version,
    )
    assert (context.trace_id, context.span_id) == (record.trace_id, record.span_id)
    assert {
        "compute.kernel.name": "acme.f",
        "compute.kernel.runtime": "acme",
        "compute.kernel.layer": "acme",
        "compute.kernel.role": "trip",
        "compute.kernel.session.id": session.current().id,
        "compute.kernel.session.run": session.current().run,
        "compute.kernel.session.seq": telemetry.trips[0].seq,
        "process.pid": os.getpid(),
        "thread.id": threading.get_native_id(),
        "compute.kernel.phase": "serving",
    } == dict(record.attributes)


def test_every_attribute_of_an_event_is_one_that_its_definition_names(
    acme: Any, logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    instrumentor().instrument(logger_provider=logs.provider, start_events=True, serving_after=0)
    acme.build("f")

    assert set(semconv.EVENTS[semconv.START_EVENT].attributes) == set(logs.records[0].log_record.attributes)


def test_only_the_outermost_trip_has_an_event(acme: Any, telemetry: Telemetry, logs: Logs) -> None:
    instrumentor().instrument(logger_provider=logs.provider, start_events=True)
    made = acme.Compiler()
    made.compile("outer", lambda: made.compile("inner"))
    made.compile("next")

    assert ["acme.outer", "acme.next"] == logs.kernels
    assert 3 == len(telemetry.trips)


@pytest.mark.parametrize("level", ["off", "basic", "full"])
def test_a_trip_without_a_span_has_its_event_and_level_off_has_none(
    acme: Any, logs: Logs, level: str
) -> None:
    unsampled = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    instrumentor().instrument(
        tracer_provider=unsampled, logger_provider=logs.provider, start_events=True, level=level
    )
    acme.Compiler().compile("f", source="secret")

    assert ([] if level == "off" else ["acme.f"]) == logs.kernels
    assert "secret" not in str([each.log_record.attributes for each in logs.records])


def test_under_suppression_there_is_no_event(acme: Any, logs: Logs) -> None:
    instrumentor().instrument(logger_provider=logs.provider, start_events=True)
    with suppress_instrumentation():
        acme.build("f")

    assert [] == logs.records


def test_the_option_can_be_changed_while_the_program_runs(acme: Any, logs: Logs) -> None:
    other = Logs()
    made = instrumentor()
    made.instrument(logger_provider=logs.provider)
    for name, changes in (
        ("a", {}),
        ("b", {"start_events": True}),
        ("c", {"level": "full"}),
        ("d", {"logger_provider": other.provider}),
        ("e", {"start_events": False}),
        ("f", {"start_events": True}),
    ):
        made.instrument(**changes)
        acme.build(name)

    assert ["acme.b", "acme.c"] == logs.kernels
    assert ["acme.d", "acme.f"] == other.kernels


def test_a_logger_that_is_not_enabled_is_not_called(
    acme: Any, logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def enabled(_self: Any, **about: Any) -> bool:
        asked.append(about)
        return False

    kind: Any = type(logs.provider.get_logger("any"))
    monkeypatch.setattr(kind, "enabled", enabled, raising=False)
    instrumentor().instrument(logger_provider=logs.provider, start_events=True)
    acme.build("f")

    assert [] == logs.records
    (about,) = asked
    assert (SeverityNumber.INFO, semconv.START_EVENT) == (about["severity_number"], about["event_name"])
    assert trace.get_current_span(about["context"]).get_span_context().is_valid


@pytest.mark.faults_logged
def test_a_logger_that_raises_costs_the_event_alone(
    acme: Any, telemetry: Telemetry, logs: Logs, caplog: pytest.LogCaptureFixture
) -> None:
    class Raising(Logs):
        def on_emit(self, log_record: Any) -> None:
            raise LookupError("theirs")

    instrumentor().instrument(logger_provider=Raising().provider, start_events=True)
    acme.build("f")
    error = ArithmeticError("theirs")
    with pytest.raises(ArithmeticError) as raised:
        acme.build("g", failing(error))

    assert error is raised.value
    assert [("acme.f", "compiled"), ("acme.g", "ArithmeticError")] == ends(telemetry.trips)
    assert 1 == len(messages(caplog)), messages(caplog)


def test_the_start_that_a_sink_is_told_says_which_thread_it_is_on(acme: Any, telemetry: Telemetry) -> None:
    telemetry.sink.wants_start = True
    instrumentor().instrument()
    acme.build("f")
    attributes = telemetry.sink.starts[0].attributes

    assert (os.getpid(), threading.get_native_id()) == (
        attributes[semconv.PROCESS_PID],
        attributes[semconv.THREAD_ID],
    )


OLD = """
import sys
from opentelemetry import _logs

class Logger(_logs.Logger):
    def emit(self, record): ...

_logs.Logger = Logger  # as before version 1.38
import logging
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
from otel_kernel import pipeline
print(pipeline.configure(start_events=True).events)
print(pipeline.configure(level="full").events)
"""


def test_an_api_that_has_no_events_is_said_once() -> None:
    root = Path(otel_kernel.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", OLD],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert "" == done.stderr
    assert [
        "ERROR option start_events is ignored: events need opentelemetry-api 1.38 or newer",
        "None",
        "None",
    ] == done.stdout.splitlines()


def test_the_module_of_events_is_imported_by_the_option_alone() -> None:
    code = "import sys; from otel_kernel import pipeline; pipeline.configure()"
    code += "; print('otel_kernel.start_events' in sys.modules)"
    root = Path(otel_kernel.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert "False\n" == done.stdout
    assert pipeline.current().events is None
