"""Put a callback of ours where a runtime takes just one, without taking the place from anyone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from otel_kernel import faults
from otel_kernel.patching import MissingPointError
from otel_kernel.trip import OpenTrip, current

SlotReader: TypeAlias = "Callable[[OpenTrip, Mapping[str, Any]], None]"
"""Is given the open trip and the keyword arguments of the callback."""


@dataclass(frozen=True, slots=True)
class Slot:
    """An attribute in which a runtime keeps a callback or None, called with keyword arguments.

    Whoever is in it when we come is called after us. Who comes after us may call us, or not: a reader of the
    trip must do without what the slot would have told.

    Example:
        >>> Slot("triton.knobs", "compilation.listener", _read_times)
    """

    module: str
    name: str
    """Name inside the module, dotted: of an attribute of an object."""
    read: SlotReader
    """Called inside an open trip of the runtime."""
    optional: bool = False
    """Whether the runtime is instrumented without this slot where it is missing."""
    read_outside: Callable[[Mapping[str, Any]], None] | None = None
    """Called where no trip of the runtime is open, as in its compile workers."""

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    def install(self, runtime: str) -> Chained:
        """Put ours into the slot, in front of what is there.

        Raises:
            MissingPointError: there is no such slot.
        """
        *path, attribute = self.name.split(".")
        holder: Any = sys.modules.get(self.module)
        for part in path:
            holder = getattr(holder, part, None)
        if holder is None or not hasattr(holder, attribute):
            raise MissingPointError(f"{self} does not exist")
        return Chained(runtime, self, holder, attribute)


class Chained:
    """A callback of ours in its slot, and what it goes on to call."""

    __slots__ = ("attribute", "enabled", "holder", "previous", "runtime", "slot", "was_set")

    def __init__(self, runtime: str, slot: Slot, holder: Any, attribute: str) -> None:
        self.runtime = runtime
        self.slot = slot
        self.holder = holder
        self.attribute = attribute
        self.enabled = True
        self.was_set = attribute in holder.__dict__
        """Whether the object itself held something, and not its class a default."""
        self.previous: Callable[..., Any] | None = getattr(holder, attribute)
        setattr(holder, attribute, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Tell the reader, then call the previous callback, whose errors are its own."""
        if self.enabled:
            try:
                open_trip = current()
                if open_trip is not None and open_trip.runtime == self.runtime:
                    self.slot.read(open_trip, kwargs)
                elif self.slot.read_outside is not None:
                    self.slot.read_outside(kwargs)
            except Exception:
                faults.caught(f"the reader of {self.slot}")
        return self.previous(*args, **kwargs) if self.previous is not None else None

    def restore(self) -> None:
        """Leave the slot if ours is in it; else whoever may still call us passes through to the previous."""
        self.enabled = False
        namespace: dict[str, Any] = self.holder.__dict__
        if namespace.get(self.attribute) is not self:
            return
        if self.was_set:
            setattr(self.holder, self.attribute, self.previous)
        else:
            delattr(self.holder, self.attribute)
