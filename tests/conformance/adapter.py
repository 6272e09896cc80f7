"""What a runtime brings to be run by the conformance suite.

A runtime has two files here, both named after it, and a runtime of several layers two for each of them:

- `adapters/<name>.py` holds `ADAPTER`, an `Adapter`: names, places and what to expect.
- `kernels/<name>.py` is a program that each case copies into a fresh folder as `kernels.py` and imports
  in a process of its own, without pytest. It imports the runtime (and whatever stands in for a device), it
  defines the functions of `Kernels`, and importing it compiles nothing.

A case that a runtime cannot have is named with its reason in `support.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

MARKER = "otk_secret_marker"
"""An identifier that stands in the bodies of kernels and nowhere else."""

Value = int | float | str


class Kernels(Protocol):
    """The functions of a program of kernels; what they return is the same with and without us."""

    def main(self) -> Value:
        """Compile `main_kernel`, stored, on the first call, and launch it on every call.

        Its body holds the identifier `MARKER`, so that a leaked text is found.
        """
        ...

    def second(self) -> Value:
        """Do the same with another kernel, stored, that shares nothing with the first."""
        ...

    def unstored(self) -> Value:
        """Do the same with a kernel that the runtime does not store."""
        ...

    def failing(self) -> Value:
        """Raise what the runtime raises for a kernel whose body reads `MARKER`, defined nowhere.

        Every call fails, with an exception of the same class and text.
        """
        ...

    def unloadable(self) -> Value:
        """Raise what the runtime raises for an artifact that is found and cannot be loaded.

        Because of a broken entry that this function has put into the store, or a device that refuses.
        """
        ...

    def control_flow(self) -> Value:
        """End well, after exceptions inside the runtime that are part of how it works."""
        ...

    def another(self, n: int) -> Value:
        """Compile and launch one more kernel, a new one for every `n`, quickly; stored where that can be."""
        ...

    def quick(self, n: int) -> object:
        """Go through a point of shape `trip` once, as cheaply as the runtime can, be it by failing.

        Returns an object (kernel, function, ...) that can be weakly referenced and that must die once the
        caller drops it.
        """
        ...

    def on_launch(self) -> Sequence[object]:
        """Return the objects that a launch of `main` goes through: the kernel, a launcher, ...

        Their attributes, and those of their classes, are compared with and without us.
        """
        ...


After = str
"""What a trip comes to: an outcome (`compiled`, `loaded`, `rekeyed`), or `raises <error.type>`."""

Damage = Literal["corrupted", "emptied", "deleted"]


def _no_variables(_store: Path) -> dict[str, str]:
    return {}


def _cut_short(artifact: bytes) -> bytes:
    return artifact[: len(artifact) // 2] + b"\xff" * 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """How one runtime is run by the suite."""

    runtime: str
    """Name in attributes."""
    name: str = ""
    """Name of both files, where it is not that of the runtime."""
    layer: str | None = None
    """The layer whose trips and spans of trips the cases look at; None for all."""
    module: str
    """Top module of the runtime: its cases are skipped where it cannot be imported."""
    instrumentor: str
    """`module:Class` of the instrumentor."""
    main_kernel: str
    """`compute.kernel.name` of the kernel of `main()`, whose module is `kernels`."""
    second_kernel: str
    """The same of `second()`."""
    entries: Callable[[Path], list[Path]]
    """Returns the files under a store that hold the artifact of `main()`, the only one there."""
    variables: Callable[[Path], dict[str, str]] = _no_variables
    """Returns the environment variables that make the runtime keep its store at a path."""

    compiled: Mapping[str, type | object]
    """Every attribute of the compiled trip of `main()` at level full, beside those that every trip has: the
    type of its value, or the value itself. A name that ends in `.*` stands for one or more of a family."""
    loaded: Mapping[str, type | object]
    """The same when it is loaded."""
    corrupt: Callable[[bytes], bytes] = _cut_short
    """Returns an artifact that is damaged, where one that is cut short would not do."""
    damaged: Mapping[Damage, After]
    """What `main()` comes to in a new process whose store has been damaged."""
    rejected: Mapping[Damage, bool] = field(default_factory=dict[Damage, bool])
    """Whether the trip then says `store.rejected`; false where not named."""
    read_only: After
    """What `second()` comes to when its store has become read-only after the import of `kernels`."""
    blocked: After
    """What `second()` comes to when a plain file stands where the store should be."""
    key_of_unstored: Literal["present", "disabled", "bypassed", "unsupported"]
    """Whether the trip of `unstored()` has a key, or why not."""
    failure: str
    """`error.type` of `failing()`."""
    load_failure: str
    """`error.type` of `unloadable()`."""
    abandoned: frozenset[str]
    """What the abandoned trips of `control_flow()` say."""
    trips_of_two_threads: int = 1
    """Records of `main()` called by two threads at once: 1 where the runtime locks."""

    @property
    def label(self) -> str:
        """How the cases of this adapter are called."""
        return self.name or self.runtime
