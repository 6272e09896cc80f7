"""Scripts about what leaves the process at which level."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from conformance.harness import Sink, kernels, raised_by, say, value, watch
from otel_kernel.records import Trip


def everything_at_a_level() -> None:
    """Run every kind of trip at the level that the command line names, with every way out of the process."""
    from conformance.spans import Metrics

    metrics = Metrics()
    recording = Path(os.environ["CONFORMANCE_STORE"]).with_name("trips.db")
    watch(level=sys.argv[2], meter_provider=metrics.provider, recording=recording)
    program = kernels()
    results = [program.main(), program.second(), program.unstored(), program.control_flow()]
    error = raised_by(program.failing)
    raised_by(program.failing)
    raised_by(program.unloadable)
    value("results", results)
    value("failed", error is not None)
    metrics.report()


def not_recording() -> None:
    """Run with a sampler that drops every span of the program and of ours."""
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    from conformance.spans import tracer_provider

    provider = tracer_provider(sampler=ALWAYS_OFF)
    watch(level="full", tracer_provider=provider)
    with provider.get_tracer("program").start_as_current_span("request"):
        value("main", kernels().main())


def exported() -> None:
    """Hand the finished spans back as trips."""
    from conformance.spans import tracer_provider
    from otel_kernel.exporter import TripExporter

    class Exported(Sink):
        def finished(self, trip: Trip) -> None:
            say("exported", trip.to_json())

    watch(level=sys.argv[2], tracer_provider=tracer_provider(TripExporter(Exported())))
    program = kernels()
    program.main()
    program.control_flow()
    raised_by(program.failing)


def without_an_sdk() -> None:
    watch(sdk=False)
    value("main", kernels().main())
    value("sdk", [name for name in sys.modules if name.startswith("opentelemetry.sdk")])


def without_us() -> None:
    value("main", kernels().main())
