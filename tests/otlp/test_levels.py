"""What each level lets out of the process. A marker stands for what belongs to the user: text of a kernel."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import StatusCode
from telemetry import Telemetry

from otel_kernel import pipeline, semconv
from otel_kernel.instrumentor import KernelInstrumentor
from otel_kernel.records import TextDigest
from otlp.receiver import Receiver

MARKER = "quarterly_margin"
TEXTS = {"ir": f"load {MARKER}", "source": f"define i32 @f ; {MARKER}"}
NAMESPACE: dict[str, Any] = {}
exec(f"def undefined():\n    return {MARKER} * 2\n", NAMESPACE)

UNDEFINED: Callable[[], Any] = NAMESPACE["undefined"]


def _refused() -> None:
    raise ValueError(f"cannot type {MARKER} in line 1" + "x" * 300)


class _OddError(Exception):
    def __str__(self) -> str:
        raise RuntimeError(f"no words for {MARKER}")


def _odd() -> None:
    raise _OddError


@pytest.fixture
def everything(telemetry: Telemetry, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """Returns all that has left the process: spans, measurements, trips of a sink, a recording, logs."""
    caplog.set_level(logging.DEBUG)
    telemetry.sink.wants_start = True
    (tmp_path / "recording").mkdir()
    pipeline.configure(recording=tmp_path / "recording" / "trips.db")

    def collect() -> str:
        metrics = telemetry.reader.get_metrics_data()
        return "\n".join(
            [
                *(span.to_json() for span in telemetry.spans),
                metrics.to_json() if metrics else "",
                *map(repr, telemetry.sink.starts),
                *map(repr, telemetry.trips),
                *(path.read_bytes().decode("latin-1") for path in (tmp_path / "recording").rglob("*")),
                caplog.text,
            ]
        )

    return collect


def compile_all(acme: Any, *more: Callable[[], Any]) -> None:
    """Compile one kernel that can be, and two or more that cannot."""
    acme.Compiler().compile("f", **TEXTS)
    for body in (UNDEFINED, _refused, *more):
        with pytest.raises((NameError, ValueError, _OddError)):
            acme.Compiler().compile("g", body, **TEXTS)


def test_at_basic_nothing_of_a_kernels_text_leaves_the_process(
    acme: Any, acme_instrumentor: KernelInstrumentor, telemetry: Telemetry, everything: Callable[[], str]
) -> None:
    acme_instrumentor.instrument()
    compile_all(acme, _odd)
    out = everything()

    assert MARKER not in out
    assert "SQLite format 3" in out
    assert 4 == len(telemetry.spans) == len(telemetry.trips) == len(telemetry.sink.starts)
    assert out.count(TextDigest.of(TEXTS["ir"]).sha256) >= 8, "the digest is in each span and each trip"
    assert [
        None,
        "NameError at shop.py:12 A042",
        "ValueError at shop.py:12 A042",
        f"{_OddError.__module__}._OddError at shop.py:12 A042",
    ] == [span.status.description for span in telemetry.spans]
    assert [] == [event for span in telemetry.spans for event in span.events]


def test_at_full_texts_and_messages_are_there_too(
    acme: Any, acme_instrumentor: KernelInstrumentor, telemetry: Telemetry, everything: Callable[[], str]
) -> None:
    acme_instrumentor.instrument(level="full")
    compile_all(acme)
    compiled, undefined, refused = telemetry.spans

    assert MARKER in everything()
    assert TEXTS["ir"] == (compiled.attributes or {})[semconv.IR_TEXT]
    assert TEXTS["source"] == (compiled.attributes or {})[semconv.SOURCE_TEXT]
    assert f"NameError at shop.py:12 A042: name '{MARKER}' is not defined" == undefined.status.description
    assert StatusCode.ERROR is refused.status.status_code
    assert [undefined.status.description, refused.status.description] == [
        trip.message for trip in telemetry.trips[1:]
    ]


def test_at_full_a_message_is_cut_at_256_characters(
    acme: Any, acme_instrumentor: KernelInstrumentor, telemetry: Telemetry
) -> None:
    acme_instrumentor.instrument(level="full")
    with pytest.raises(ValueError, match=MARKER) as caught:
        acme.Compiler().compile("g", _refused)
    (span,) = telemetry.spans

    assert f"ValueError at shop.py:12 A042: {str(caught.value)[:256]}" == span.status.description
    assert 256 < len(str(caught.value))


def test_at_full_a_failure_has_one_exception_event(
    acme: Any, acme_instrumentor: KernelInstrumentor, telemetry: Telemetry
) -> None:
    acme_instrumentor.instrument(level="full")
    with pytest.raises(NameError):
        acme.Compiler().compile("g", UNDEFINED)
    (event,) = telemetry.spans[0].events

    assert "exception" == event.name
    assert "NameError" == (event.attributes or {})["exception.type"]
    assert MARKER in str((event.attributes or {})["exception.message"])


@pytest.mark.parametrize("level", ["off", "basic", "full"])
def test_the_program_sees_its_own_exception_at_every_level(
    acme: Any, acme_instrumentor: KernelInstrumentor, telemetry: Telemetry, level: str
) -> None:
    error, cause, context = ValueError(MARKER), KeyError(1), KeyError(2)

    def fails() -> None:
        error.__cause__, error.__context__ = cause, context
        raise error

    acme_instrumentor.instrument(level=level)
    with pytest.raises(ValueError, match=MARKER) as caught:
        acme.Compiler().compile("g", fails)

    assert error is caught.value
    assert (cause, context) == (error.__cause__, error.__context__)
    assert (0 if level == "off" else 1) == len(telemetry.spans)


@pytest.mark.parametrize(("size", "known"), [(1024 * 1024, True), (1024 * 1024 + 1, False)])
def test_at_basic_a_text_is_digested_up_to_a_mebibyte(
    acme: Any, acme_instrumentor: KernelInstrumentor, telemetry: Telemetry, size: int, known: bool
) -> None:
    acme_instrumentor.instrument()
    acme.Compiler().compile("f", ir="x" * size)

    assert (TextDigest.of("x" * size) if known else None) == telemetry.trips[0].ir


def test_at_basic_a_text_that_would_have_to_be_made_is_not_made(
    acme: Any, acme_instrumentor: KernelInstrumentor, telemetry: Telemetry
) -> None:
    acme_instrumentor.instrument()
    acme.Compiler().compile("f", **TEXTS)

    assert telemetry.trips[0].source is None


def test_at_off_nothing_leaves_the_process(
    acme: Any, acme_instrumentor: KernelInstrumentor, telemetry: Telemetry, everything: Callable[[], str]
) -> None:
    acme_instrumentor.instrument(level="off")
    compile_all(acme)

    assert ([], [], []) == (telemetry.spans, telemetry.trips, telemetry.sink.starts)
    assert "acme" not in everything()


def test_under_suppression_no_sink_and_no_provider_is_handed_a_trip(
    acme: Any,
    acme_instrumentor: KernelInstrumentor,
    telemetry: Telemetry,
    everything: Callable[[], str],
    receiver: Receiver,
) -> None:
    acme_instrumentor.instrument(level="full", otlp=receiver.endpoint("http/protobuf"))
    with suppress_instrumentation():
        compile_all(acme)
    private = pipeline.current().spans[1].tracer_provider
    assert isinstance(private, TracerProvider)
    private.shutdown()

    assert ([], [], []) == (telemetry.spans, telemetry.trips, telemetry.sink.starts)
    assert [] == receiver.spans
    assert MARKER not in everything()


def test_the_level_can_be_changed_while_the_program_runs(
    acme: Any, acme_instrumentor: KernelInstrumentor, telemetry: Telemetry
) -> None:
    for level in ("off", "basic", "full", "off"):
        acme_instrumentor.instrument(level=level)
        acme.Compiler().compile("f", **TEXTS)
    basic, full = telemetry.trips

    assert (TextDigest.of(TEXTS["ir"]), TEXTS["ir"]) == (basic.ir, full.ir)


def test_a_trip_keeps_the_level_it_began_with(
    acme: Any, acme_instrumentor: KernelInstrumentor, telemetry: Telemetry
) -> None:
    acme_instrumentor.instrument(level="full")
    acme.Compiler().compile("f", lambda: pipeline.configure(level="off"), **TEXTS)

    assert TEXTS["ir"] == telemetry.trips[0].ir
