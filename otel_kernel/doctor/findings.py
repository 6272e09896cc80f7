"""What a look at an installation finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, TypeAlias

Fact: TypeAlias = "str | int | bool | list[str] | None"


class Area(str, Enum):
    """What a finding is about."""

    RUNTIME = "runtime"
    STORE = "store"
    RECORDING = "recording"
    START = "start"
    OPENTELEMETRY = "opentelemetry"
    ENDPOINT = "endpoint"


class State(str, Enum):
    """How it is."""

    WELL = "well"
    ABSENT = "absent"
    """It is not there, and need not be."""
    NOTE = "note"
    """It works, and there is something to know."""
    ATTENTION = "attention"
    """It does not work."""


def _no_facts() -> Mapping[str, Fact]:
    return {}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    area: Area
    name: str
    """Which runtime, file, package or endpoint."""
    state: State
    text: str
    """What was found, one line."""
    advice: str | None = None
    """What to do."""
    facts: Mapping[str, Fact] = field(default_factory=_no_facts)
    """The same for programs; which ones depends on the area."""

    def to_json(self) -> dict[str, Any]:
        """Return the finding as `schemas/doctor.schema.json` describes it."""
        return {**asdict(self), "area": self.area.value, "state": self.state.value}
