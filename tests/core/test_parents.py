"""Spans around trips."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from acme_instrumentor import compile_point, instrumentor
from checks import messages
from opentelemetry.trace import StatusCode
from telemetry import Telemetry

from otel_kernel import pipeline, semconv
from otel_kernel.beside import SideSpan, start_parent
from otel_kernel.patching import Point
from otel_kernel.shapes import Call, parent
from otel_kernel.spans import Spans

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def read_build(call: Call) -> Generator[SideSpan | None, None, None]:
    span = start_parent("acme", "build", f"acme.{call.argument('name')}", "acme")
    yield span
    if span is not None:
        span.end(call.error)


def failing_steps() -> list[None]:
    raise ArithmeticError


def build_point(read: Any = read_build) -> Point:
    return Point("acme.compiler", "build", parent(read), ("name",))


def test_parent_is_a_span_around_the_trips(acme: Any, telemetry: Telemetry) -> None:
    instrumentor(build_point(), compile_point()).instrument()
    acme.compiler.build("k")

    trip, around = telemetry.spans
    assert trip.parent is not None
    assert around.context is not None
    assert around.attributes is not None
    assert ("compile acme.k", "build acme.k") == (trip.name, around.name)
    assert around.context.span_id == trip.parent.span_id
    assert ("parent", "acme", "acme", "acme.k") == tuple(
        around.attributes[name]
        for name in (semconv.ROLE, semconv.RUNTIME, semconv.LAYER, semconv.KERNEL_NAME)
    )
    assert StatusCode.UNSET is around.status.status_code
    assert 1 == len(telemetry.trips)
    assert telemetry.trips[0].parent_seq is None


def test_parent_fails_with_its_call(acme: Any, telemetry: Telemetry) -> None:
    def fail() -> None:
        raise LookupError("a text of the program")

    instrumentor(build_point(), compile_point()).instrument()
    with pytest.raises(LookupError):
        acme.compiler.build("k", fail)

    _, around = telemetry.spans
    assert (StatusCode.ERROR, "LookupError") == (around.status.status_code, around.status.description)
    assert around.attributes is not None
    assert "LookupError" == around.attributes["error.type"]
    assert () == around.events


def test_parent_may_span_several_calls(acme: Any, telemetry: Telemetry) -> None:
    kept: list[SideSpan | None] = []

    def read_one_of_two(call: Call) -> Generator[SideSpan | None, None, None]:
        if not kept:
            kept.append(start_parent("acme", "build", "acme.all", "acme"))
        yield kept[0]
        if call.argument("name") == "last" and kept[0] is not None:
            kept[0].end()

    instrumentor(build_point(read_one_of_two), compile_point()).instrument()
    acme.compiler.build("first")
    acme.Compiler().compile("between")
    acme.compiler.build("last")

    first, between, last, around = telemetry.spans
    assert around.context is not None
    assert [around.context.span_id, None, around.context.span_id] == [
        span.parent.span_id if span.parent is not None else None for span in (first, between, last)
    ]


def test_parent_in_a_provider_of_our_own_is_one_too(acme: Any, telemetry: Telemetry) -> None:
    """A private provider finds no parent in the context of the program, which is not to see its spans."""
    from dataclasses import replace

    ours = Telemetry(telemetry.sink)
    before = pipeline.current()
    private = Spans(ours.tracer_provider, private=True)
    pipeline._current = replace(before, spans=(*before.spans, private))  # pyright: ignore[reportPrivateUsage] - no endpoint is at hand
    instrumentor(build_point(), compile_point()).instrument()
    acme.compiler.build("k")
    ours.close()

    trip, around = ours.spans
    assert trip.parent is not None
    assert around.context is not None
    assert around.parent is None
    assert around.context.span_id == trip.parent.span_id


def test_no_parent_at_level_off(acme: Any, telemetry: Telemetry) -> None:
    pipeline.configure(level="off")
    instrumentor(build_point(), compile_point()).instrument()

    assert "k" == acme.compiler.build("k").name
    assert [] == telemetry.spans


@pytest.mark.faults_logged
def test_fault_of_a_reader_costs_the_parent_alone(
    acme: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    def read_badly(_call: Call) -> Generator[SideSpan | None, None, None]:
        yield from failing_steps()

    instrumentor(build_point(read_badly), compile_point()).instrument()

    assert "k" == acme.compiler.build("k").name
    assert ["compile acme.k"] == [span.name for span in telemetry.spans]
    assert 1 == len(messages(caplog))
