"""Scripts about what is a trip and what a launch costs."""

from __future__ import annotations

from typing import Any

from opentelemetry.instrumentation.utils import suppress_instrumentation

from conformance.harness import kernels, python_calls, value, watch


def main() -> None:
    watch(level="full")
    value("main", kernels().main())


def main_again_and_again() -> None:
    watch()
    program = kernels()
    results = {program.main() for _ in range(1001)}
    value("results", sorted(results))


def unstored() -> None:
    watch()
    value("unstored", kernels().unstored())


def suppressed() -> None:
    watch()
    with suppress_instrumentation():
        value("main", kernels().main())
    value("second", kernels().second())


def launches(instrumented: bool) -> None:
    """Report what a launch calls and what it finds, with us or without us."""
    if instrumented:
        watch()
    program = kernels()
    program.main()
    program.main()

    def launch_often() -> None:
        for _ in range(100):
            program.main()

    value("calls", python_calls(launch_often))
    value("attributes", [_attributes(each) for each in program.on_launch()])


def launches_with_us() -> None:
    launches(instrumented=True)


def launches_without_us() -> None:
    launches(instrumented=False)


def _attributes(each: object) -> dict[str, str]:
    """Return what stands in an object and in its classes, by `owner.name`."""
    found: dict[str, Any] = {f"self.{name}": held for name, held in getattr(each, "__dict__", {}).items()}
    for owner in type(each).__mro__:
        if owner.__module__ == "builtins":
            continue
        for name, held in vars(owner).items():
            found[f"{owner.__module__}.{owner.__qualname__}.{name}"] = held
    return {name: _shown(held) for name, held in found.items()}


def _shown(held: Any) -> str:
    """Return what tells an attribute from a replacement: its class, and where its code is from."""
    code = (
        getattr(getattr(held, "__func__", held), "__code__", None) if type(held).__name__ in _PLAIN else None
    )
    place = f" {code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    return f"{type(held).__module__}.{type(held).__qualname__}{place}"


_PLAIN = ("function", "classmethod", "staticmethod")
