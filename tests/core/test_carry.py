"""Work that a runtime hands to another thread keeps its context."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest
from acme_instrumentor import compile_point, instrumentor
from telemetry import Telemetry

from otel_kernel.carry import carry
from otel_kernel.patching import Point

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

WORD: ContextVar[str] = ContextVar("word", default="none")
THEIRS: ContextVar[str] = ContextVar("theirs", default="none")


@pytest.fixture
def submit(acme: Any, telemetry: Telemetry) -> Any:
    """A function of acme that runs a job in a thread, for which we carry the context."""

    def run(job: Any, *arguments: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(job, *arguments).result()

    acme.compiler.submit = run
    instrumentor(Point("acme.compiler", "submit", carry("job", WORD), ("job",)), compile_point()).instrument()
    return acme.compiler.submit


def test_trip_on_another_thread_is_inside_the_span_that_asked(
    submit: Any, acme: Any, telemetry: Telemetry
) -> None:
    tracer = telemetry.tracer_provider.get_tracer("program")
    with tracer.start_as_current_span("request") as request:
        submit(lambda: acme.Compiler().compile("k"))

    trip = telemetry.spans[0]
    assert trip.parent is not None
    assert request.get_span_context().span_id == trip.parent.span_id


def test_trip_on_another_thread_is_inside_the_trip_that_asked(
    submit: Any, acme: Any, telemetry: Telemetry
) -> None:
    inner, outer = acme.Compiler(), acme.Compiler()
    outer.compile("outer", lambda: submit(job=lambda: inner.compile("inner")))

    inside, around = telemetry.trips
    assert ("acme.inner", "acme.outer") == (inside.kernel, around.kernel)
    assert (around.seq, None) == (inside.parent_seq, around.parent_seq)


def test_only_what_is_named_goes_along(submit: Any) -> None:
    WORD.set("ours")
    THEIRS.set("the program's")

    assert ("ours", "none") == submit(lambda: (WORD.get(), THEIRS.get()))


def test_arguments_results_and_errors_are_as_they_were(submit: Any) -> None:
    assert 7 == submit(divmod, 23, 3)[0]

    with pytest.raises(ZeroDivisionError):
        submit(divmod, 1, 0)


def test_call_that_the_function_would_refuse_is_refused_by_it(submit: Any) -> None:
    with pytest.raises(TypeError, match="job"):
        submit()
