"""What every benchmark shares: variants that take turns, and lines of ratios with their spread.

Times are the processor's time of the thread (or of a child process), so that other work on the machine counts
as little as can be. Nothing here is ever asserted: a line says whether its target is met, and people judge.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_FEWEST_FOR_QUARTILES: Final = 4


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table."""

    name: str
    target: str
    """Empty where the ratio is only shown."""
    figures: tuple[float, ...]
    """One of each round."""
    met: bool | None
    unit: str = ""

    @property
    def median(self) -> float:
        """The middle one of the figures."""
        return statistics.median(self.figures)

    @property
    def spread(self) -> str:
        """The quartiles of the figures, or the least and the greatest of a few."""
        low, high = quartiles(self.figures)
        return f"{low:.2f} to {high:.2f}"

    def to_cells(self) -> tuple[str, str, str, str, str]:
        """Return what stands in a row of the table."""
        met = "" if self.met is None else "yes" if self.met else "**no**"
        return self.name, self.target, f"{self.median:.2f}{self.unit}", self.spread, met


def measure(name: str) -> list[Line]:
    """Return the lines of one benchmark."""
    return list(importlib.import_module(f"benchmarks.{name}").lines())


def quartiles(figures: Sequence[float]) -> tuple[float, float]:
    """Return the first and the third quartile, or the least and the greatest of a few figures."""
    if len(figures) < _FEWEST_FOR_QUARTILES:
        return min(figures), max(figures)
    first, _, third = statistics.quantiles(figures, n=4)
    return first, third


def shown(name: str, figures: Sequence[float], unit: str = "") -> Line:
    """Return a line without a target."""
    return Line(name, "", tuple(figures), None, unit)


def at_most(name: str, most: float, figures: Sequence[float], unit: str = "") -> Line:
    """Return a line whose median must not exceed a target."""
    return Line(name, f"at most {most:g}{unit}", tuple(figures), statistics.median(figures) <= most, unit)


def within_noise(name: str, figures: Sequence[float], control: Sequence[float]) -> Line:
    """Return a line whose median must be no higher than what the measurement itself comes to.

    Args:
        name: of the line.
        figures: ratios of what is measured to what it is measured by.
        control: ratios of the latter to itself, measured in the same rounds.
    """
    low, high = quartiles(control)
    target = f"noise ({low:.2f} to {high:.2f})"
    return Line(name, target, tuple(figures), statistics.median(figures) <= high)


def processor_seconds(run: Callable[[], object], calls: int = 1) -> float:
    """Return the processor's time that the thread takes for one call, in seconds."""
    started = time.thread_time()
    for _ in range(calls):
        run()
    return (time.thread_time() - started) / calls


class Rounds:
    """The seconds of variants, round by round."""

    def __init__(self, variants: Mapping[str, Callable[[], float]], rounds: int) -> None:
        """Measure: once each without looking, to warm up, and then in turns, each round in another order.

        Args:
            variants: measures one variant and returns seconds, by name.
            rounds: how often.
        """
        names = list(variants)
        for measure in variants.values():
            measure()
        self.seconds: dict[str, list[float]] = {name: [] for name in names}
        for number in range(rounds):
            start = number % len(names)
            for name in names[start:] + names[:start]:
                self.seconds[name].append(variants[name]())

    def ratios(self, over: str, under: str) -> list[float]:
        """Return the ratio of two variants in each round."""
        return [a / b for a, b in zip(self.seconds[over], self.seconds[under], strict=True)]

    def differences(self, over: str, under: str) -> list[float]:
        """Return the difference of two variants in each round, in milliseconds."""
        return [1000 * (a - b) for a, b in zip(self.seconds[over], self.seconds[under], strict=True)]
