"""Ids of spans and the random numbers of the program have nothing to do with each other."""

from __future__ import annotations

import random
from typing import Any

import pytest
from acme_instrumentor import compile_point, instrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def ids_of(acme: Any, provider: TracerProvider) -> list[tuple[int, int]]:
    """Compile twice with the same random numbers, and return the ids of both spans."""
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    made = instrumentor(compile_point())
    made.instrument(tracer_provider=provider)
    for _ in range(2):
        random.seed(7)
        acme.Compiler().compile("k", lambda: None)
    made.uninstrument()
    contexts = [span.get_span_context() for span in exporter.get_finished_spans()]
    return [(context.trace_id, context.span_id) for context in contexts if context is not None]


def test_a_program_that_rewinds_its_random_numbers_gets_new_ids(acme: Any) -> None:
    first, second = ids_of(acme, TracerProvider())

    assert first[0] != second[0]
    assert first[1] != second[1]
    assert 0 not in (*first, *second)


def test_the_random_numbers_of_the_program_are_the_same_as_without_us(acme: Any) -> None:
    random.seed(7)
    without = random.random()
    ids_of(acme, TracerProvider())

    assert without == random.random()


def test_ids_that_the_program_has_chosen_stay_its_own(acme: Any) -> None:
    class Chosen(RandomIdGenerator):
        def generate_span_id(self) -> int:
            return 42

    first, second = ids_of(acme, TracerProvider(id_generator=Chosen()))

    assert (42, 42) == (first[1], second[1])


def test_trace_ids_are_still_said_to_be_random(acme: Any) -> None:
    from otel_kernel.span_ids import OwnIds

    given = RandomIdGenerator()
    asked = getattr(given, "is_trace_id_random", None)

    assert asked is None or OwnIds(given).is_trace_id_random() is asked()
