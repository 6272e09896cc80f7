"""Why a kernel was compiled although it, or something like it, had been before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from otel_kernel.report.components import Comparison, Kind, Part
from otel_kernel.report.history import Record, nearest


class Reason(str, Enum):
    """Why a kernel was compiled."""

    FIRST = "first"
    """No earlier record of this kernel is at hand."""
    BUILD = "build"
    """Another compiler, or another build of it."""
    TARGET = "target"
    """For other hardware."""
    SPECIALIZATION = "specialization"
    """For other types, shapes or constants."""
    SOURCE = "source"
    """Its code is another, or what that calls or closes over."""
    OPTION = "option"
    """With other options or settings."""
    ENVIRONMENT = "environment"
    """Under other variables of the environment."""
    STORE_LOCATION = "store_location"
    """The store is another one, or has moved."""
    STORE_OFF = "store_off"
    """The store was not asked: it is off, or does not serve this kernel."""
    NEVER_STORED = "never_stored"
    """The store had not taken the artifact."""
    DAMAGED = "damaged"
    """The entry could not be read."""
    LOST = "lost"
    """The store held the artifact before, and no more."""
    CONCURRENT = "concurrent"
    """Another process or thread was still compiling it."""
    EXCESS = "excess"
    """Nothing has changed, and yet it was compiled."""
    OTHER_ARTIFACT = "other_artifact"
    """It was loaded, although the artifact was made with something else that the key does not hold."""
    UNKNOWN = "unknown"
    """Nobody said what the store did with the artifact, or what the key is made of."""


_OF_KIND: Final = {kind: Reason.EXCESS if kind is Kind.STAMP else Reason(kind.value) for kind in Kind}


@dataclass(frozen=True, slots=True)
class Why:
    """Why a kernel was compiled, or is not what it should be."""

    reason: Reason
    """The first that explains it."""
    detail: str | None = None
    """What the runtime said of it, or the two places."""
    differing: tuple[Part, ...] = ()
    """Parts of the key that differ from the earlier record's, those that explain most first."""
    equal: tuple[str, ...] = ()
    """Names of the parts that are equal."""
    earlier: Record | None = None
    """The record that it was compared with."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What the parts that explain it tell of."""
        return Comparison(self.differing, self.equal).kinds


def why(record: Record, earlier: Sequence[Record]) -> Why | None:
    """Return why a record was not loaded, or is not what it should be; None if it was loaded and is.

    Args:
        record: the record.
        earlier: records of the same kernel that started before, of any session, by their start.
    """
    same = [each for each in earlier if each.key is not None and each.key == record.key]
    if record.outcome == "loaded":
        return _other_artifact(record, same)
    if record.lookup == "bypass" and record.key is not None and earlier:
        return Why(Reason.STORE_OFF, record.reason, earlier=earlier[-1])
    if same:
        return _not_found(record, same)
    found = nearest(record, earlier)
    if found is None:
        return Why(Reason.FIRST)
    comparison = record.compared_with(found)
    if not comparison.kinds and None in (record.key, found.key):
        return _without_key(record, found)
    return _changed(record, found, comparison)


def _other_artifact(record: Record, same: Sequence[Record]) -> Why | None:
    made = next((each for each in reversed(same) if each.outcome == "compiled"), None)
    if made is None:
        return None
    comparison = record.compared_with(made)
    if all(part.follows or part.kind is Kind.STAMP for part in comparison.differing):
        return None
    return Why(Reason.OTHER_ARTIFACT, None, comparison.differing, comparison.equal, made)


def _not_found(record: Record, same: Sequence[Record]) -> Why:
    """Return why the store did not have what there was under the same key before."""
    last = same[-1]
    if record.location is None and record.stored == 0:
        return Why(Reason.STORE_OFF, record.store_reason, earlier=last)
    held = [each for each in same if each.is_held]
    if not held:
        refused = [each for each in same if each.stored == 0]
        if refused:
            return Why(Reason.NEVER_STORED, refused[-1].store_reason, earlier=refused[-1])
        return Why(Reason.UNKNOWN, earlier=last)
    here = [each for each in held if (each.host, each.location) == (record.host, record.location)]
    if not here:
        return Why(Reason.STORE_LOCATION, _places(held[-1], record), earlier=held[-1])
    if record.rejected is not None:
        return Why(Reason.DAMAGED, record.rejected, earlier=here[-1])
    if all(each.ended_ns > record.started_ns for each in here):
        return Why(Reason.CONCURRENT, earlier=here[-1])
    return Why(Reason.LOST, record.location, earlier=here[-1])


def _places(before: Record, after: Record) -> str:
    if before.host != after.host:
        return f"on host {before.host or 'unknown'} before, on {after.host or 'unknown'} now"
    return f"{before.location or 'no store'} before, {after.location} now"


def _without_key(record: Record, found: Record) -> Why:
    """Return why nothing was found, where one of two records that are alike has no key."""
    if record.identity is not None and found.identity is not None and record.identity != found.identity:
        return Why(Reason.SOURCE, earlier=found)
    if record.key is None:
        return Why(Reason.STORE_OFF, record.store_reason or record.key_absent_reason, earlier=found)
    return Why(Reason.NEVER_STORED, found.store_reason or found.key_absent_reason, earlier=found)


def _changed(record: Record, found: Record, comparison: Comparison) -> Why:
    """Return what differs from the nearest record under another key."""
    differing, equal = comparison.differing, comparison.equal
    kinds = comparison.kinds
    is_same = record.identity is not None and record.identity == found.identity
    detail = None
    if kinds:
        reason = _OF_KIND[kinds[0]]
        if reason is Reason.SOURCE and is_same:
            detail = "the function itself is the same: a comment, a function that it calls, or something else in its file"
        elif reason is Reason.EXCESS:
            detail = "only the time stamp of the source differs"
        elif reason is Reason.STORE_LOCATION and record.location is None and record.stored == 0:
            reason, detail = Reason.STORE_OFF, record.store_reason
        elif reason is Reason.STORE_LOCATION:
            detail = "the place of the store is part of the key"
    elif record.identity is not None and found.identity is not None and not is_same:
        reason = Reason.SOURCE
    elif equal:
        reason, detail = Reason.EXCESS, "no known part of the key differs"
    else:
        reason = Reason.UNKNOWN
    return Why(reason, detail, differing, equal, found)
