"""The base of all instrumentors: support check, points, options."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Collection, Iterable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any, ClassVar

from packaging.requirements import Requirement
from packaging.version import Version

from otel_kernel import faults, imports, options, pending, pipeline, session, states
from otel_kernel.boot import RUNTIMES
from otel_kernel.patching import MissingPointError, Patch, Point
from otel_kernel.slots import Chained, Slot
from otel_kernel.stores import StoreLocation

OLDEST = "0.56b0"
"""The oldest version of opentelemetry-instrumentation that works, as pyproject.toml names it."""


def too_old() -> str | None:
    """Return a line that says that opentelemetry-instrumentation is too old, or None if it is not."""
    try:
        found = version("opentelemetry-instrumentation")
    except PackageNotFoundError:
        return None
    if Version(found) >= Version(OLDEST):
        return None
    update = f'pip install "opentelemetry-instrumentation>={OLDEST}"'
    return f"opentelemetry-instrumentation {found} is too old for otel-kernel; {update}"


try:
    from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined] # untyped upstream
except ImportError as error:  # an old one needs what newer installations have no more
    raise ImportError(too_old() or str(error)) from None


@functools.cache
def _is_served() -> bool:
    why = too_old()
    if why is not None:
        faults.logger.error(why)
    return why is None


class KernelInstrumentor(BaseInstrumentor):  # type: ignore[misc] # untyped upstream
    """Instruments one runtime: a subclass says where to wrap and how to read, and nothing else.

    Never instantiated itself, since the upstream base keeps its one object where subclasses inherit it.
    """

    runtime: ClassVar[str]
    """Name of the runtime in attributes."""
    module: ClassVar[str]
    """Top module of the runtime: once it is imported, the points are looked at."""
    requires: ClassVar[str]
    """The distribution and the versions that are supported, as a requirement."""
    configuration: ClassVar[type] = options.Configuration
    """What OpenTelemetry's declarative configuration validates the options of a file by."""

    def points(self) -> tuple[Point | Slot, ...]:
        """Return the table of points; called when the runtime is imported, so readers may import it too."""
        raise NotImplementedError

    @classmethod
    def store_location(cls) -> StoreLocation | None:
        """Return where the store is, without importing the runtime; None where that is not known."""
        return None

    @classmethod
    def rank(cls) -> tuple[int, int] | None:
        """Return rank and world size as the runtime's process group tells, without starting one."""
        return None

    _patches: dict[Point | Slot, Patch | Chained]
    _missing: set[Point | Slot]
    _refused: bool
    _is_imported: bool

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return the supported versions, as OpenTelemetry asks for them."""
        return (self.requires,)

    def instrument(self, **kwargs: Any) -> None:
        """Instrument the runtime, now if it is imported and else when it is.

        A second call patches nothing: it merges its providers and options. It never raises.

        Args:
            **kwargs: `tracer_provider`, `meter_provider`, `logger_provider`, and the fields of
                `otel_kernel.options.Options`.
        """
        if not _is_served():
            return
        if self.is_instrumented_by_opentelemetry:
            _configure(kwargs)
            return
        try:
            # Our own check of the version runs when the runtime is imported: it need not be installed yet.
            super().instrument(**{**kwargs, "skip_dep_check": True})
        except Exception:  # the loader of `opentelemetry-instrument` would leave out all that follow
            states.ended(self)
            faults.caught(f"instrumenting by {type(self).__name__}")

    def _instrument(self, **kwargs: Any) -> None:
        _configure(kwargs)
        self._patches, self._missing, self._refused = {}, set(), False
        self._is_imported = False
        self._hooks: list[imports.Callback] = []
        states.began(self)
        self._await(self.module, self._runtime_imported)

    def _uninstrument(self, **_kwargs: Any) -> None:
        for hook in self._hooks:
            imports.cancel(hook)
        self._hooks.clear()
        session.ask_no_more(self.rank)
        self._restore()
        pending.release(self.runtime)
        states.ended(self)

    def _await(self, module: str, hook: imports.Callback) -> None:
        self._hooks.append(hook)
        imports.when_imported(module, hook)

    def _runtime_imported(self, module: ModuleType) -> None:
        self._is_imported = True
        if not self._is_supported(module):
            return
        try:
            points = self.points()
        except (ImportError, AttributeError) as error:
            self._refuse(str(error))  # a reader imports what this version has not
            return
        except Exception:
            self._refused = True
            raise
        for name in dict.fromkeys(point.module for point in points):
            there = [point for point in points if point.module == name]
            if _can_be_imported(name):
                self._await(name, partial(self._patch, there))
            else:
                for point in there:
                    self._miss(point, f"{point} does not exist")
        session.ask_for_rank(self.rank)

    def _patch(self, points: Iterable[Point | Slot], _module: ModuleType) -> None:
        for point in points:
            if self._refused:
                return
            try:
                self._patches[point] = point.install(self.runtime)
            except MissingPointError as error:
                self._miss(point, str(error))
            except Exception:
                self._refused = True
                self._restore()
                raise

    def _miss(self, point: Point | Slot, why: str) -> None:
        self._missing.add(point)
        if self._refused:
            return
        if not point.optional:
            self._refuse(why)
            return
        # As in some of the supported versions: no news for users, and the gauge of points tells it.
        faults.logger.info("%s%s is instrumented in part: %s", self.runtime, _version_of(self.requires), why)

    def _restore(self) -> None:
        for patch in self._patches.values():
            patch.restore()
        self._patches.clear()

    def _is_supported(self, module: ModuleType) -> bool:
        requirement = Requirement(self.requires)
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            # Vendors ship a runtime under a name of theirs, such as pytorch-triton-rocm.
            found = str(getattr(module, "__version__", ""))
        if not found:
            self._refuse(f"no distribution named {requirement.name} is installed")
            return False
        if requirement.specifier.contains(found, prereleases=True):
            return True
        self._refuse(f"version {found} is not among the supported {requirement}")
        return False

    def _refuse(self, why: str) -> None:
        """Leave the runtime as it was, whole: half of its points would tell half a truth."""
        self._refused = True
        self._restore()
        faults.logger.warning("%s%s is not instrumented: %s", self.runtime, _version_of(self.requires), why)

    def state_of_points(self) -> dict[str, int]:
        """Return the number of points by state: patched, missing; or refused, where the runtime is left alone.

        Nothing before the runtime is imported, and nothing when it is not instrumented any more.
        """
        if not self.is_instrumented_by_opentelemetry or not self._is_imported:
            return {}
        if self._refused:
            return {"refused": 1}
        return {"patched": len(self._patches), "missing": len(self._missing)}

    def missing_points(self) -> list[str]:
        """Return the points that the imported version does not have."""
        return sorted(str(point) for point in self._missing) if self.state_of_points() else []


def _can_be_imported(module: str) -> bool:
    """Whether a module is there or would be found. Below a package that is not imported yet nobody knows."""
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        name = ".".join(parts[:length])
        if name not in sys.modules:
            try:
                return importlib.util.find_spec(name) is not None
            except (ImportError, ValueError):
                return False  # below a module that is no package
    return True


def _version_of(requirement: str) -> str:
    try:
        return f" {version(Requirement(requirement).name)}"
    except PackageNotFoundError:
        return ""


def _configure(kwargs: dict[str, Any]) -> None:
    try:
        pipeline.configure(**{name: value for name, value in kwargs.items() if name not in _UPSTREAM})
    except Exception:
        faults.caught("reading the options")


# What OpenTelemetry's own callers pass along and we have no use for.
_UPSTREAM = frozenset({"skip_dep_check", "raise_exception_on_conflict", "auto_instrumentation", "enabled"})


def all_instrumentors() -> Iterable[KernelInstrumentor]:
    """Return the instrumentor of each runtime; one that cannot be imported is logged and left out."""
    for target in dict.fromkeys(RUNTIMES.values()):
        module, _, name = target.partition(":")
        try:
            instrumentor = getattr(importlib.import_module(module), name)()
        except Exception:
            faults.caught(f"importing {module}")
            continue
        yield instrumentor
