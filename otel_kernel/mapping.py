"""Trip to span and back: the one place that knows how a trip is written as attributes.

Both ways are exact. `to_attributes` writes a trip, `read_span` reads a finished span from whatever carried
it and answers with the trip, with `NotATrip`, or with a `Reject` that says what was lost on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any, TypeVar

from otel_kernel import faults, semconv
from otel_kernel.records import (
    Abandoned,
    AttributeValue,
    CompilationOutcome,
    KernelCacheKey,
    Session,
    Text,
    TextDigest,
    Trip,
    TruncatedText,
    hex128,
    is_text,
)
from otel_kernel.texts import TextFiles

if TYPE_CHECKING:
    from otel_kernel.trip import OpenTrip

INLINE_LIMIT = 64 * 1024
"""Default for the longest text, in bytes, that a span carries itself."""

_TEXTS = {
    "ir": (semconv.IR_TEXT, semconv.IR_SHA256, semconv.IR_SIZE, semconv.IR_LOCATION),
    "source": (semconv.SOURCE_TEXT, semconv.SOURCE_SHA256, semconv.SOURCE_SIZE, semconv.SOURCE_LOCATION),
}

# What `Trip` holds in fields of its own; everything else of ours is in `Trip.attributes`.
_FIELDS = frozenset(
    {
        semconv.KERNEL_NAME,
        semconv.RUNTIME,
        semconv.LAYER,
        semconv.ROLE,
        semconv.SESSION_ID,
        semconv.SESSION_RUN,
        semconv.SESSION_SEQ,
        semconv.SESSION_PARENT_SEQ,
        semconv.RECORD_VERSION,
        semconv.RECORD_SIZE,
        semconv.RECORD_LENGTH,
        semconv.KEY_ID,
        semconv.KEY_BUILD_ID,
        semconv.OUTCOME,
        semconv.DURATION_NS,
        semconv.ABANDONED,
        semconv.ERROR_TYPE,
        *(name for names in _TEXTS.values() for name in names),
    }
)

CONTEXT_ATTRIBUTES = tuple(name for name in semconv.ATTRIBUTES if name not in _FIELDS)
"""The names that a trip carries in `attributes`, families aside."""

# What goes together: where the first name is, the second was written too.
_TOGETHER = [(semconv.KEY_ID, semconv.KEY_BUILD_ID), (semconv.KEY_BUILD_ID, semconv.KEY_ID)]
for _text, _sha256, _size, _location in _TEXTS.values():
    _TOGETHER.extend(((_text, _sha256), (_text, _size), (_text, _location), (_location, _sha256)))
    _TOGETHER.extend(((_location, _size), (_sha256, _size), (_size, _sha256)))

_REQUIRED = frozenset(
    name
    for name, definition in semconv.ATTRIBUTES.items()
    if definition.requirement == "required" and definition.when in ("always", "at the end")
)


@dataclass(slots=True)
class SpanView:
    """The parts of a finished span that a trip is read from, whatever carried it."""

    scope: str
    attributes: Mapping[str, object]
    start_ns: int
    trace_id: str
    span_id: str
    description: str = ""
    """Description of the status."""


@dataclass(frozen=True, slots=True)
class NotATrip:
    """A span that is none of ours, or one of ours that stands beside trips."""

    reason: str


@dataclass(frozen=True, slots=True)
class Reject:
    """A span that was a trip and cannot be read as one any more."""

    reason: str
    """What was lost or is wrong, with the names of the fields."""
    trace_id: str = ""
    span_id: str = ""


def start_attributes(trip: Trip | OpenTrip) -> dict[str, AttributeValue]:
    """Return what is known when a trip starts, for samplers."""
    attributes: dict[str, AttributeValue] = {
        semconv.RUNTIME: trip.runtime,
        semconv.LAYER: trip.layer,
        semconv.KERNEL_NAME: trip.kernel,
        semconv.ROLE: "trip",
        semconv.SESSION_ID: trip.session.id,
        semconv.SESSION_RUN: trip.session.run,
        semconv.SESSION_SEQ: trip.seq,
    }
    if trip.parent_seq is not None:
        attributes[semconv.SESSION_PARENT_SEQ] = trip.parent_seq
    return attributes


def to_attributes(
    trip: Trip | OpenTrip, *, inline_limit: int = INLINE_LIMIT, texts: TextFiles | None = None
) -> dict[str, AttributeValue]:
    """Return the attributes of a finished trip, to be set in this order and in one call.

    An SDK that holds a limit drops the oldest attributes first. So one that every trip has comes first: a
    reader then always finds a name missing that it can name; what a reject is identified by comes last.

    Args:
        trip: a trip that has ended.
        inline_limit: bytes up to which a text is an attribute.
        texts: where longer texts go; without it, or where it cannot be written, only their digests travel.

    Raises:
        ValueError: the trip is unfinished.
    """
    if trip.duration_ns is None:
        raise ValueError(f"trip {trip.seq} of session {trip.session.id} is unfinished and has no span yet")
    attributes: dict[str, AttributeValue] = {semconv.DURATION_NS: trip.duration_ns, **trip.attributes}
    for name, text in (("ir", trip.ir), ("source", trip.source)):
        if text is not None:
            _write_text(attributes, name, text, inline_limit, texts)
    if trip.key is not None:
        attributes[semconv.KEY_ID] = hex128(trip.key.id)
        attributes[semconv.KEY_BUILD_ID] = hex128(trip.key.build_id)
    if trip.error_type is not None:
        attributes[semconv.ERROR_TYPE] = trip.error_type
    if trip.abandoned is not None:
        attributes[semconv.ABANDONED] = trip.abandoned.value
    if trip.outcome is not None:
        attributes[semconv.OUTCOME] = trip.outcome.value
    attributes.update(start_attributes(trip))
    attributes[semconv.RECORD_VERSION] = semconv.RECORD_FORMAT
    attributes[semconv.RECORD_SIZE] = len(attributes) + 2
    attributes[semconv.RECORD_LENGTH] = _length(attributes)
    return attributes


def _length(attributes: Mapping[str, AttributeValue]) -> int:
    length = 0
    for value in attributes.values():
        if isinstance(value, str):
            length += len(value)
    return length - _text_length(attributes)


def _text_length(attributes: Mapping[str, AttributeValue]) -> int:
    length = 0
    for name in (semconv.IR_TEXT, semconv.SOURCE_TEXT):
        text = attributes.get(name)
        if isinstance(text, str):
            length += len(text)
    return length


def _write_text(
    attributes: dict[str, AttributeValue], name: str, text: Text, inline_limit: int, texts: TextFiles | None
) -> None:
    text_name, sha256_name, size_name, location_name = _TEXTS[name]
    if isinstance(text, str):
        digest = TextDigest.of(text)
        if digest.size <= inline_limit:
            attributes[text_name] = text
            attributes[location_name] = "inline"
        elif texts is not None and _keep(texts, text, digest):
            attributes[location_name] = "file"
        else:
            attributes[location_name] = "none"
    elif isinstance(text, TruncatedText):
        digest = TextDigest(text.sha256, text.size)
        if text.prefix:
            attributes[text_name] = text.prefix
        attributes[location_name] = "inline" if text.prefix else "none"
    elif text is None:
        return
    else:
        digest = text
    attributes[sha256_name] = digest.sha256
    attributes[size_name] = digest.size


def _keep(texts: TextFiles, text: str, digest: TextDigest) -> bool:
    try:
        texts.put(text, digest.sha256)
    except OSError:
        faults.caught(f"keeping a text in {texts.folder}")
        return False
    return True


class _UnreadableError(Exception):
    """Says why a span of ours is a reject."""


def read_span(span: SpanView, texts: TextFiles | None = None) -> Trip | NotATrip | Reject:
    """Return the trip that a span stands for.

    Args:
        span: a finished span.
        texts: where to look for texts that the span does not carry whole.

    Returns:
        The trip; `NotATrip` for a span of somebody else or one that stands beside trips; a `Reject` for a
        trip of which a field was lost, cut or altered, or that a newer version wrote.
    """
    role = span.attributes.get(semconv.ROLE)
    if role is None and not span.scope.startswith(semconv.SCOPE_PREFIX):
        return NotATrip(f"scope {span.scope!r} is not otel-kernel's")
    if role in ("load", "parent", "stage", "record", "trial"):
        return NotATrip(f"a span of role {role} stands beside trips")
    try:
        return _read_trip(span, texts)
    except (_UnreadableError, ValueError) as error:
        return Reject(str(error), span.trace_id, span.span_id)


def _read_trip(span: SpanView, texts: TextFiles | None) -> Trip:
    version = span.attributes.get(semconv.RECORD_VERSION)
    if type(version) is int and not 1 <= version <= semconv.RECORD_FORMAT:
        raise _UnreadableError(
            f"{semconv.RECORD_VERSION} is {version}, and this otel-kernel reads 1 to {semconv.RECORD_FORMAT}: update it"
        )
    ours, length, wrong = _own_attributes(span.attributes)
    _check_complete(ours, length)
    _check_values(ours, wrong)
    context = ours.copy()
    for name in _FIELDS & ours.keys():
        del context[name]
    return Trip(
        session=_session(_str(ours, semconv.SESSION_ID), _str(ours, semconv.SESSION_RUN)),
        seq=_int(ours, semconv.SESSION_SEQ),
        parent_seq=_int(ours, semconv.SESSION_PARENT_SEQ) if semconv.SESSION_PARENT_SEQ in ours else None,
        runtime=_str(ours, semconv.RUNTIME),
        layer=_str(ours, semconv.LAYER),
        kernel=_str(ours, semconv.KERNEL_NAME),
        started_ns=span.start_ns,
        duration_ns=_int(ours, semconv.DURATION_NS),
        outcome=_enum(ours, semconv.OUTCOME, CompilationOutcome),
        key=_read_key(ours),
        ir=_read_text(ours, "ir", texts),
        source=_read_text(ours, "source", texts),
        abandoned=_enum(ours, semconv.ABANDONED, Abandoned),
        error_type=_str(ours, semconv.ERROR_TYPE) if semconv.ERROR_TYPE in ours else None,
        message=span.description or None,
        trace_id=span.trace_id,
        span_id=span.span_id,
        attributes=context,
    )


@lru_cache(maxsize=1024)
def _session(session_id: str, run: str) -> Session:
    return Session(id=session_id, run=run)


class _Kinds(dict[str, Any]):
    """The type that an attribute must have by its name, or why there is none; looked up once a name."""

    FOREIGN = object()
    """Not a name of ours."""
    NEWER = object()
    """A name of ours that a newer version has given: carried on as it is."""
    _LIMIT = 10_000  # members of families are named by what is read, which may be hostile

    def __missing__(self, name: str) -> Any:
        definition = semconv.definition(name)
        if definition is not None:
            kind: Any = definition.type
        else:
            kind = self.NEWER if name.startswith(semconv.NAMESPACE) else self.FOREIGN
        if len(self) < self._LIMIT:
            self[name] = kind
        return kind


_kinds = _Kinds()

_VALUES = {name: definition.values for name, definition in semconv.ATTRIBUTES.items() if definition.values}


def _own_attributes(attributes: Mapping[str, object]) -> tuple[dict[str, AttributeValue], int, str]:
    """Return what is ours, the characters of its strings, and which value has a wrong type, if any."""
    ours: dict[str, AttributeValue] = {}
    length = 0
    wrong = ""
    for name, value in attributes.items():
        kind = _kinds[name]
        if kind is type(value):
            if kind is str:
                length += len(value)  # type: ignore[arg-type] # a str, as the line above says
            ours[name] = value  # type: ignore[assignment] # of a type that a name of ours has
            continue
        if kind is _Kinds.FOREIGN:
            continue
        if isinstance(value, str):
            length += len(value)
        elif not isinstance(value, int):
            raise _UnreadableError(f"{name} must be a str, an int or a bool, got {shortened(value)}")
        if kind is not _Kinds.NEWER and not wrong:
            wrong = f"{name} must be {kind.__name__}, got {shortened(value)}"
        ours[name] = value
    return ours, length - _text_length(ours), wrong


def _check_complete(ours: Mapping[str, AttributeValue], found: int) -> None:
    """Raise unless exactly what was written is there, in its full length; `found` is what is left of it."""
    size, length = ours.get(semconv.RECORD_SIZE), ours.get(semconv.RECORD_LENGTH)
    written = f" of {size} attributes {len(ours)} are left" if type(size) is int else ""
    missing = (
        []
        if ours.keys() >= _REQUIRED
        else [name for name in semconv.ATTRIBUTES if name in _REQUIRED - ours.keys()]
    )
    for name, other in _TOGETHER:
        if name in ours and other not in ours:
            missing.append(other)
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        raise _UnreadableError(f"lost: {names};{written or ' the span has no count of its attributes'}")
    if type(size) is not int or type(length) is not int:
        raise _UnreadableError(
            f"{semconv.RECORD_SIZE} and {semconv.RECORD_LENGTH} must be ints, got {shortened(size)} and {shortened(length)}"
        )
    # A text that a pipeline took away whole is not lost: its digest says so, and `TruncatedText` shows it.
    taken = 0
    for text, _, _, location in _TEXTS.values():
        taken += ours.get(location) == "inline" and text not in ours
    lost = size - len(ours) - taken
    if lost > 0:
        raise _UnreadableError(f"lost: {lost} optional attributes;{written}")
    if lost < 0:
        raise _UnreadableError(
            f"added: something on the way set {-lost} attributes under names of a trip; {size} were written"
        )
    cut = length - found
    if cut > 0:
        raise _UnreadableError(f"cut: {_suspects(ours)} ({cut} of {length} characters are missing)")
    if cut < 0:
        raise _UnreadableError(f"altered: {-cut} characters more than the {length} that were written")


def _suspects(ours: Mapping[str, AttributeValue]) -> str:
    """Name what a length limit has cut: nothing is longer than the limit, and all that was cut is as long."""
    lengths = {
        name: len(value)
        for name, value in ours.items()
        if isinstance(value, str) and name not in (semconv.IR_TEXT, semconv.SOURCE_TEXT)
    }
    limit = max(lengths.values(), default=0)
    return ", ".join(sorted(name for name, length in lengths.items() if length == limit))


def _check_values(ours: Mapping[str, AttributeValue], wrong: str) -> None:
    if wrong:
        raise _UnreadableError(wrong)
    for name, values in _VALUES.items():
        if name in ours and ours[name] not in values:
            raise _UnreadableError(f"{name} must be one of {', '.join(values)}, got {shortened(ours[name])}")


def _str(ours: Mapping[str, AttributeValue], name: str) -> str:
    return str(ours[name])


def _int(ours: Mapping[str, AttributeValue], name: str) -> int:
    return int(ours[name])


_E = TypeVar("_E", bound=Enum)


def _enum(ours: Mapping[str, AttributeValue], name: str, kind: type[_E]) -> _E | None:
    return kind(ours[name]) if name in ours else None


def _read_key(ours: Mapping[str, AttributeValue]) -> KernelCacheKey | None:
    if semconv.KEY_ID not in ours:
        return None
    return KernelCacheKey.from_hex(id=_str(ours, semconv.KEY_ID), build_id=_str(ours, semconv.KEY_BUILD_ID))


def _read_text(ours: Mapping[str, AttributeValue], name: str, texts: TextFiles | None) -> Text:
    text_name, sha256_name, size_name, location_name = _TEXTS[name]
    if sha256_name not in ours:
        return None
    digest = TextDigest(_str(ours, sha256_name), _int(ours, size_name))
    if location_name not in ours:
        return digest
    prefix = _str(ours, text_name) if text_name in ours else ""
    if not is_text(prefix):
        raise _UnreadableError(f"{text_name} must be valid Unicode")
    left = TextDigest.of(prefix)
    if left == digest:
        return prefix
    whole = texts.get(digest.sha256, digest.size) if texts is not None else None
    if whole is not None:
        return whole
    if left.size >= digest.size or left.sha256 == digest.sha256:
        raise _UnreadableError(f"altered: {text_name} does not fit {sha256_name} and {size_name}")
    return TruncatedText(prefix, digest.sha256, digest.size)
