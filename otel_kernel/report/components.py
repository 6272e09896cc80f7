"""What a part of a key tells of, and what differs between two records.

A part is a key component, by the name that its instrumentor gives it, or one of the attributes `specialization`,
`target` and `build` where no component tells of the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final


class Kind(str, Enum):
    """What a part of a key tells of, those that explain most first."""

    BUILD = "build"
    """The compiler, or the build of it."""
    TARGET = "target"
    """The hardware compiled for."""
    SPECIALIZATION = "specialization"
    """Types, shapes and constants of the arguments."""
    SOURCE = "source"
    """The kernel's own code, or what that calls or closes over."""
    OPTION = "option"
    """Options of the kernel, or settings of the runtime."""
    ENVIRONMENT = "environment"
    """Variables of the environment."""
    STORE_LOCATION = "store_location"
    """Where the store is."""
    STAMP = "stamp"
    """When the source was written; with the same bytes nothing has changed."""


KINDS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(
        (
            "build",
            "compiler",
            "jaxlib",
            "llvm",
            "numba",
            "ptxas",
            "python",
            "torch_version",
            "triton",
            "triton_key",
        ),
        Kind.BUILD,
    ),
    **dict.fromkeys(("backend", "platform"), Kind.BUILD),
    **dict.fromkeys(
        ("cpu", "cpu_features", "devices", "system_info", "target", "topology", "triple"), Kind.TARGET
    ),
    **dict.fromkeys(
        (
            "allowed_dot_input_precisions",
            "arch",
            "backend_name",
            "default_dot_input_precision",
            "deprecated_fp8_dot_operand_dtypes",
            "max_num_imprecise_acc_default",
            "supported_fp8_dtypes",
            "warp_size",
        ),
        Kind.TARGET,
    ),
    **dict.fromkeys(
        ("attributes", "constants", "guards", "inputs", "signature", "specialization"), Kind.SPECIALIZATION
    ),
    **dict.fromkeys(
        ("base_name", "bytecode", "closure", "graph", "module", "name", "source", "source_digest"),
        Kind.SOURCE,
    ),
    **dict.fromkeys(("environment", "xla_flags"), Kind.ENVIRONMENT),
    "cache_folders": Kind.STORE_LOCATION,
    "source_stamp": Kind.STAMP,
}
"""What the parts of all runtimes tell of; one that is not here is an option, of which runtimes have many."""

FOLLOWING: Final = frozenset(
    {"backend", "base_name", "compile_options", "config", "graph", "made_in", "module", "name"}
)
"""Parts that other parts flow into: they explain something only where nothing else differs.

The module that JAX lowers holds the shapes, and the hash of Triton's backend the target. Where a kernel of
Inductor's was made, here or in a worker, is no part of its key.
"""

_NONE: Final = "{}"

_BY_ATTRIBUTE: Final = (Kind.SPECIALIZATION, Kind.TARGET, Kind.BUILD)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the key that differs; None where a record does not have it."""

    name: str
    kind: Kind
    before: str | None
    after: str | None

    @property
    def follows(self) -> bool:
        """Whether it differs where others do."""
        return self.name in FOLLOWING


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between two records."""

    differing: tuple[Part, ...]
    """Those that explain most first."""
    equal: tuple[str, ...]
    """Names of the parts that are equal."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What the parts tell of that explain the rest, those that explain most first."""
        explaining = [part for part in self.differing if not part.follows]
        if all(part.kind is Kind.STAMP for part in explaining):
            explaining = list(self.differing)
        found = {part.kind for part in explaining}
        return tuple(kind for kind in Kind if kind in found)

    @property
    def distance(self) -> tuple[int, int]:
        """How much differs: a record that differs less explains more."""
        return len(self.kinds), len(self.differing)


_ORDER: Final = {kind: place for place, kind in enumerate(Kind)}


def kind_of(name: str) -> Kind:
    """Return what a part tells of."""
    return KINDS.get(name, Kind.OPTION)


@lru_cache(maxsize=4096)
def compared(
    before: str,
    after: str,
    attributes_before: tuple[str | None, ...],
    attributes_after: tuple[str | None, ...],
) -> Comparison:
    """Compare two records.

    Args:
        before: the key components, a JSON object.
        after: the same of the later record.
        attributes_before: specialization, target and build.
        attributes_after: the same of the later record.
    """
    if _NONE in (before, after):  # a record without a key has only its attributes to compare
        before = after = _NONE
    known = tuple(None not in both for both in zip(attributes_before, attributes_after, strict=True))
    ones, twos = _parts(before, attributes_before, known), _parts(after, attributes_after, known)
    names = sorted(ones.keys() | twos.keys(), key=lambda name: (_ORDER[kind_of(name)], name))
    return Comparison(
        tuple(
            Part(name, kind_of(name), ones.get(name), twos.get(name))
            for name in names
            if ones.get(name) != twos.get(name)
        ),
        tuple(sorted(name for name in names if ones.get(name) == twos.get(name))),
    )


def _parts(components: str, attributes: tuple[str | None, ...], known: tuple[bool, ...]) -> dict[str, str]:
    parts = {name: str(value) for name, value in json.loads(components).items()}
    told = {kind_of(name) for name in parts if name not in FOLLOWING}
    for kind, value, is_known in zip(_BY_ATTRIBUTE, attributes, known, strict=True):
        if kind not in told and is_known and value is not None:
            parts[kind.value] = value
    return parts
