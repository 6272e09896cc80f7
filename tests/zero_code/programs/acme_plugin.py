"""An instrumentor of acme that another distribution brings, and some that are broken."""

from __future__ import annotations

from typing import Any, ClassVar

from acme_instrumentor import compile_point, find_point
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined] # untyped upstream
from otlp.readers import read_all

from otel_kernel.instrumentor import KernelInstrumentor
from otel_kernel.patching import Point


class PluginInstrumentor(KernelInstrumentor):
    """Instruments acme, and reads all that a reader can."""

    runtime: ClassVar[str] = "acme"
    module: ClassVar[str] = "acme"
    requires: ClassVar[str] = "acme-compiler >= 1, < 2"

    def points(self) -> tuple[Point, ...]:
        """Return the points in acme's compiler and store."""
        return compile_point(read_all), find_point()


class WithoutAModule(KernelInstrumentor):
    """Cannot even be told to instrument."""

    runtime: ClassVar[str] = "broken"


class WithoutPoints(PluginInstrumentor):
    """Fails when its runtime is imported."""

    runtime: ClassVar[str] = "broken"

    def points(self) -> tuple[Point, ...]:
        """Raise."""
        raise RuntimeError("a fault of ours")


class Raising(BaseInstrumentor):  # type: ignore[misc] # untyped upstream
    """Somebody else's, which raises."""

    def instrumentation_dependencies(self) -> tuple[str, ...]:
        """Return nothing."""
        return ()

    def _instrument(self, **_kwargs: Any) -> None:
        raise RuntimeError("a fault of theirs")

    def _uninstrument(self, **_kwargs: Any) -> None:
        """Do nothing."""


class Speaking(Raising):
    """Somebody else's, which works."""

    def _instrument(self, **_kwargs: Any) -> None:
        print("theirs is at work", flush=True)
