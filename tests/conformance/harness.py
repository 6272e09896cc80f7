"""What the script of a case has at hand, in the process that it watches.

Everything seen goes to the report at once, one JSON line each, so that it outlives a killed process and so
that child processes write into the same report. Nothing of an SDK is imported unless a script asks for it.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
from collections.abc import Callable
from typing import Any, cast

import wrapt

from conformance.adapter import Adapter, Kernels
from otel_kernel import faults, pipeline
from otel_kernel.instrumentor import KernelInstrumentor
from otel_kernel.patching import Point
from otel_kernel.records import Trip

REPORT = "CONFORMANCE_REPORT"
ADAPTER = "CONFORMANCE_ADAPTER"


def say(kind: str, value: object) -> None:
    """Append a line to the report, whole, from whatever process or thread."""
    line = json.dumps({"kind": kind, "pid": os.getpid(), "value": value}) + "\n"
    file = os.open(os.environ[REPORT], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def value(name: str, what: object) -> None:
    """Report a named value that the test asks for."""
    say("value", {name: what})


def adapter() -> Adapter:
    """Return the adapter under test."""
    found: Adapter = importlib.import_module(f"conformance.adapters.{os.environ[ADAPTER]}").ADAPTER
    return found


def kernels() -> Kernels:
    """Import the program of kernels, which is called `kernels` for every runtime."""
    return cast("Kernels", importlib.import_module("kernels"))


def instrumentor() -> KernelInstrumentor:
    """Return the instrumentor of the runtime under test."""
    module, _, name = adapter().instrumentor.partition(":")
    made: KernelInstrumentor = getattr(importlib.import_module(module), name)()
    return made


def points() -> list[Any]:
    """Return the points and slots that the runtime has, with all their modules imported."""
    importlib.import_module(adapter().module)
    return [point for point in instrumentor().points() if _is_there(point) or not point.optional]


def _is_there(point: Any) -> bool:
    try:
        owner: Any = importlib.import_module(point.module)
        for part in point.name.split("."):
            owner = getattr(owner, part)
    except (ImportError, AttributeError):
        return False  # an older version does without
    return True


def wrap_points(wrapper: Callable[..., Any]) -> None:
    """Be another tool: wrap every point with a function as wrapt calls it."""
    for point in points():
        if isinstance(point, Point):
            wrapt.wrap_function_wrapper(sys.modules[point.module], point.name, wrapper)


class Sink:
    """Reports every trip."""

    wants_start = True

    def started(self, trip: Trip) -> None:
        say("started", trip.to_json())

    def finished(self, trip: Trip) -> None:
        say("trip", trip.to_json())


class LogLines(logging.Handler):
    """Reports every line that is logged at warning or above, by whomever."""

    def emit(self, record: logging.LogRecord) -> None:
        say("log", {"logger": record.name, "message": record.getMessage()})


def watch(*, sdk: bool = True, sink: bool = True, **options: Any) -> KernelInstrumentor:
    """Instrument the runtime in code and report its trips, spans and log lines.

    Args:
        sdk: whether an SDK makes spans.
        sink: whether a sink takes trips.
        **options: of `instrument()`; a `tracer_provider` of the script's own may be among them.
    """
    logging.getLogger().addHandler(LogLines(logging.WARNING))
    if sdk and "tracer_provider" not in options:
        from conformance.spans import tracer_provider

        options["tracer_provider"] = tracer_provider()
    made = instrumentor()
    made.instrument(**options)
    if sink:
        pipeline.add_sink(Sink())
    return made


def raised_by(call: Callable[[], object]) -> BaseException | None:
    """Return what `call` raised, or None."""
    try:
        call()
    except Exception as error:
        return error
    return None


def python_calls(call: Callable[[], object]) -> list[str]:
    """Return what `call` calls, Python functions and C functions, by name and in order."""
    calls: list[str] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            calls.append(frame.f_code.co_name)
        elif event == "c_call":
            calls.append(getattr(argument, "__qualname__", repr(argument)))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return calls


def main() -> None:
    """Run the script that the command line names as `module:function`."""
    module, _, name = sys.argv[1].partition(":")
    faults.reraise = os.environ.get("CONFORMANCE_FAULTS") != "logged"
    getattr(importlib.import_module(module), name)()


if __name__ == "__main__":
    main()
