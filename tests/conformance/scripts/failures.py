"""Scripts about exceptions that pass through us."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from conformance.harness import kernels, raised_by, say, value, watch, wrap_points
from otel_kernel.trip import error_type


def failing() -> None:
    """Look at the exception right below our wrapper and right above it."""
    below: list[BaseException] = []
    above: list[BaseException] = []
    _wrap_points(below)
    watch()
    _wrap_points(above)
    program = kernels()
    error = raised_by(program.failing)
    again = raised_by(program.failing)
    assert error is not None
    assert again is not None
    value("count", len(below))
    value("same", [id(each) for each in below] == [id(each) for each in above])
    value("raised", [_shown(error), _shown(again)])
    value("in flight", _in_flight(program.failing))


def failing_without_us() -> None:
    program = kernels()
    error, again = raised_by(program.failing), raised_by(program.failing)
    assert error is not None
    assert again is not None
    value("raised", [_shown(error), _shown(again)])
    value("in flight", _in_flight(program.failing))


def _in_flight(call: Callable[[], object]) -> list[str | None]:
    """Return the context of an exception that is raised while another one is being handled."""
    try:
        raise LookupError("the program's own")
    except LookupError:
        error = raised_by(call)
        chain: list[str | None] = []
        while error is not None:
            chain.append(error_type(error))
            error = error.__context__
        return chain


def _wrap_points(seen: list[BaseException]) -> None:
    """Be another tool, which notes the exceptions that leave the points."""

    def note(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
        try:
            return wrapped(*args, **kwargs)
        except BaseException as error:
            seen.append(error)
            say("passing", {"error": error_type(error), "context": _name(error.__context__)})
            raise

    wrap_points(note)


def _name(error: BaseException | None) -> str | None:
    return None if error is None else error_type(error)


def _shown(error: BaseException) -> dict[str, Any]:
    ours = ("/otel_kernel/", "/instrumentors/", "/wrapt/", "/conformance/")
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "type": error_type(error),
        "text": str(error),
        "context": _name(error.__context__),
        "cause": _name(error.__cause__),
        "suppressed": error.__suppress_context__,
        "frames": [f"{f.filename}:{f.name}" for f in frames if not any(part in f.filename for part in ours)],
    }


def control_flow() -> None:
    from conformance.spans import Metrics

    metrics = Metrics()
    watch(meter_provider=metrics.provider)
    value("control_flow", kernels().control_flow())
    metrics.report()


def control_flow_without_us() -> None:
    value("control_flow", kernels().control_flow())


def program_span() -> None:
    """Compile well and fail inside a span of the program, and report whether it is current afterwards."""
    from opentelemetry import trace

    from conformance.spans import tracer_provider

    provider = tracer_provider()
    watch(tracer_provider=provider)
    program = kernels()
    with provider.get_tracer("program").start_as_current_span("request") as span:
        program.main()
        current = trace.get_current_span() is span
        raised_by(program.failing)
        value("current", current and trace.get_current_span() is span)
