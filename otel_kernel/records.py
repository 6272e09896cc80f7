"""The typed record of one kernel compilation, and the trip that carries it.

A *trip* is one kernel's way through a runtime's compilation path. When it ends well it is a
`CompilationRecord` plus context; when it fails, is abandoned or never ends, it is the context alone.
The record's six fields are those of CubeCL's `CompilationRecord`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypedDict, cast

INT64_MAX = 2**63 - 1
UINT128_MAX = 2**128 - 1

_HEX32 = re.compile(r"[0-9a-f]{32}").fullmatch
_HEX16 = re.compile(r"[0-9a-f]{16}").fullmatch
_HEX64 = re.compile(r"[0-9a-f]{64}").fullmatch

AttributeValue: TypeAlias = "str | int | bool"
"""What an attribute of a trip may be: a flat scalar, never None."""


class CompilationOutcome(str, Enum):
    """How a trip that ended well got its artifact."""

    COMPILED = "compiled"
    """The backend's compiler ran."""
    LOADED = "loaded"
    """The persistent store held the artifact under this key."""
    REKEYED = "rekeyed"
    """Lowered to a source the store held an artifact for under another key; the compiler never ran."""


class Abandoned(str, Enum):
    """Why a trip ended without an outcome and yet without an error."""

    RETRY = "retry"
    """The runtime gives up this attempt and starts another one itself."""
    NESTED = "nested"
    """An exception left a trip inside another trip; whoever called it may handle it."""
    TUNING = "tuning"
    """A tuner tried a candidate that cannot be built."""
    UNREAD = "unread"
    """The program went on well, but our reader failed before it knew the outcome."""


class RecordLevel(str, Enum):
    """How much of a trip is recorded."""

    OFF = "off"
    """No trips at all."""
    BASIC = "basic"
    """Everything but kernel texts; of those, the digest and the size."""
    FULL = "full"
    """Also the texts of ir and source, and the messages of errors."""


def wrong(owner: str, name: str, must: str, value: object) -> ValueError:
    """Return the error of a field that is not what it must be: it names the field and the value."""
    shown = repr(value)
    return ValueError(
        f"{owner}.{name} must be {must}, got {shown if len(shown) <= 200 else shown[:200] + '...'}"
    )


def require(condition: bool, owner: str, name: str, must: str, value: object) -> None:
    """Raise the error of `wrong` unless `condition` holds."""
    if not condition:
        raise wrong(owner, name, must, value)


def is_int(value: object, low: int, high: int) -> bool:
    """Whether `value` is an int (not a bool) within both bounds."""
    return type(value) is int and low <= value <= high


def is_text(value: object) -> bool:
    """Whether `value` is a str that UTF-8 can carry."""
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def escape(text: str) -> str:
    r"""Return `text` with each lone surrogate written as `\udXXX`, so that UTF-8 can carry it."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def digest128(text: str) -> int:
    """Return blake2b-128 of `text` in UTF-8, as a big-endian integer."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")


def hex128(value: int) -> str:
    """Return `value` as 32 lower-case hex digits."""
    return f"{value:032x}"


@dataclass(frozen=True, slots=True)
class KernelCacheKey:
    """The store entry that names an artifact: two unsigned 128-bit integers."""

    id: int
    """Tells two instances of one kernel type apart."""
    build_id: int
    """Names the compiler and the build."""

    def __post_init__(self) -> None:
        for name, value in (("id", self.id), ("build_id", self.build_id)):
            if not is_int(value, 0, UINT128_MAX):
                raise wrong("KernelCacheKey", name, "an int in 0..2**128-1", value)

    @classmethod
    def of_texts(cls, *, build: str, rest: str) -> KernelCacheKey:
        """Return the key of a runtime that identifies an artifact by text.

        Args:
            build: the text that names compiler and build.
            rest: the rest of the runtime's key, or all of it where the runtime gives one opaque hash.
        """
        return cls(id=digest128(escape(rest)), build_id=digest128(escape(build)))

    @classmethod
    def from_hex(cls, *, id: str, build_id: str) -> KernelCacheKey:  # noqa: A002 - the field's own name
        """Return the key written as two times 32 lower-case hex digits, or raise `ValueError`."""
        for name, value in (("id", id), ("build_id", build_id)):
            if not isinstance(value, str) or not _HEX32(value):
                raise wrong("KernelCacheKey", name, "32 lower-case hex digits", value)
        return cls(id=int(id, 16), build_id=int(build_id, 16))

    def to_json(self) -> dict[str, str]:
        """Return both integers as 32 hex digits."""
        return {"id": hex128(self.id), "build_id": hex128(self.build_id)}


@dataclass(frozen=True, slots=True)
class TextDigest:
    """A text that was seen but not kept: level basic."""

    sha256: str
    """Of the text in UTF-8, 64 lower-case hex digits."""
    size: int
    """Bytes of the text in UTF-8."""

    def __post_init__(self) -> None:
        _check_digest("TextDigest", self.sha256, self.size)

    @classmethod
    def of(cls, text: str) -> TextDigest:
        """Return the digest of `text`."""
        data = text.encode()
        return cls(hashlib.sha256(data).hexdigest(), len(data))


@dataclass(frozen=True, slots=True)
class TruncatedText:
    """A text that was recorded, of which a pipeline has cut or lost a part."""

    prefix: str
    """What is left, from the start of the text; may be empty."""
    sha256: str
    """Of the whole text in UTF-8, 64 lower-case hex digits."""
    size: int
    """Bytes of the whole text in UTF-8."""

    def __post_init__(self) -> None:
        if not is_text(self.prefix):
            raise wrong("TruncatedText", "prefix", "a valid Unicode str", self.prefix)
        _check_digest("TruncatedText", self.sha256, self.size)
        if len(self.prefix.encode()) >= self.size:
            must = f"shorter than the {self.size} bytes of the whole"
            raise wrong("TruncatedText", "prefix", must, self.prefix)

    def to_json(self) -> dict[str, str | int]:
        """Return the prefix under `truncated`, with the digest and the size of the whole."""
        return {"truncated": self.prefix, "sha256": self.sha256, "size": self.size}


Text: TypeAlias = "str | TruncatedText | TextDigest | None"
"""A kernel text in whatever part of it is at hand."""


def _check_digest(owner: str, sha256: object, size: object) -> None:
    if not isinstance(sha256, str) or not _HEX64(sha256):
        raise wrong(owner, "sha256", "64 lower-case hex digits", sha256)
    if not is_int(size, 0, INT64_MAX):
        raise wrong(owner, "size", "an int of bytes in 0..2**63-1", size)


def check_parts(
    owner: str, outcome: object, key: object, ir: object, source: object, kinds: tuple[type, ...]
) -> None:
    """Raise `ValueError` unless a record or a trip may consist of these.

    Args:
        owner: named in the error.
        outcome: must be a `CompilationOutcome` or None.
        key: must be a `KernelCacheKey` or None.
        ir: a text; None on a loaded trip.
        source: a text.
        kinds: what a text may be besides a valid str and None.
    """
    if outcome is not None and not isinstance(outcome, CompilationOutcome):
        raise wrong(owner, "outcome", "a CompilationOutcome or None", outcome)
    if key is not None and not isinstance(key, KernelCacheKey):
        raise wrong(owner, "key", "a KernelCacheKey or None", key)
    if ir is None and source is None:
        return
    for name, text in (("ir", ir), ("source", source)):
        if text is not None and not isinstance(text, kinds) and not is_text(text):
            named = ", ".join(f"a {kind.__name__}" for kind in kinds)
            raise wrong(owner, name, f"a valid Unicode str, {named} or None", text)
    if ir is not None and outcome is CompilationOutcome.LOADED:
        raise wrong(owner, "ir", "None on a loaded trip", ir)


class Record(Protocol):
    """A typed record: what it is and which namespace of a CubeCL environment it is stored under."""

    KIND: ClassVar[str]

    @classmethod
    def namespace(cls) -> str:
        """Return `records/v1/<kind>`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilationRecord:
    """One kernel's way into the store or out of it, as CubeCL defines it."""

    KIND: ClassVar[str] = "compilation"

    kernel: str
    """The kernel's type, stable, never a hash."""
    key: KernelCacheKey | None
    """The store entry; None (our one widening) where the store is off or bypassed."""
    ir: str | TruncatedText | None
    """The kernel as its framework defined it; level full only, never on a loaded trip."""
    outcome: CompilationOutcome
    duration: int
    """Wall time of this trip in ns; not to be summed over threads."""
    source: str | TruncatedText | None
    """What the backend compiled; level full only."""

    def __post_init__(self) -> None:
        owner = "CompilationRecord"
        if not self.kernel or not is_text(self.kernel):
            raise wrong(owner, "kernel", "a non-empty str", self.kernel)
        if not isinstance(self.outcome, CompilationOutcome):
            raise wrong(owner, "outcome", "a CompilationOutcome", self.outcome)
        if not is_int(self.duration, 0, INT64_MAX):
            raise wrong(owner, "duration", "an int of ns in 0..2**63-1", self.duration)
        check_parts(owner, self.outcome, self.key, self.ir, self.source, (TruncatedText,))

    @classmethod
    def namespace(cls) -> str:
        """Return the namespace of these records in a CubeCL environment."""
        return f"records/v1/{cls.KIND}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One process, and the run of a program that it belongs to."""

    id: str
    """32 lower-case hex digits, drawn anew after a fork."""
    run: str
    """32 lower-case hex digits, inherited by child processes through the environment."""

    def __post_init__(self) -> None:
        for name in ("id", "run"):
            value = getattr(self, name)
            if not isinstance(value, str) or not _HEX32(value):
                raise wrong("Session", name, "32 lower-case hex digits", value)


class TripJson(TypedDict):
    """A trip as JSON: one object, described by `schemas/trip.schema.json`."""

    kernel: str
    outcome: str | None
    key: dict[str, str] | None
    duration_ns: int | None
    ir: str | dict[str, str | int] | None
    source: str | dict[str, str | int] | None
    runtime: str
    layer: str
    state: str
    abandoned: str | None
    error_type: str | None
    message: str | None
    started_ns: int
    session: str
    run: str
    seq: int
    parent_seq: int | None
    trace_id: str | None
    span_id: str | None
    ir_digest: dict[str, str | int] | None
    source_digest: dict[str, str | int] | None
    attributes: dict[str, AttributeValue]


def _no_attributes() -> Mapping[str, AttributeValue]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """One trip: the record's fields where it ended well, and the context in every case.

    Exactly one of `outcome`, `error_type` and `abandoned` is set, or none on an unfinished trip, whose
    process was killed or still runs; `duration_ns` is None just there.
    """

    session: Session
    seq: int
    """Counts the trips of a session from 0; with `session.id` the identity of the trip."""
    parent_seq: int | None = None
    """The trip of the same session inside which this one ran."""
    runtime: str
    layer: str
    kernel: str
    started_ns: int
    """Wall clock, ns since the Unix epoch."""
    duration_ns: int | None
    """Wall time, ns."""
    outcome: CompilationOutcome | None = None
    key: KernelCacheKey | None = None
    ir: Text = None
    source: Text = None
    abandoned: Abandoned | None = None
    error_type: str | None = None
    """Class of the exception that left the trip, `module.qualname`."""
    message: str | None = None
    """What may be said of the error at this level."""
    trace_id: str | None = None
    """32 hex digits, where a span was made."""
    span_id: str | None = None
    """16 hex digits, where a span was made."""
    attributes: Mapping[str, AttributeValue] = field(default_factory=_no_attributes)
    """All other attributes, under their names in `semconv`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))
        if not isinstance(self.session, Session):
            raise wrong("Trip", "session", "a Session", self.session)
        if not is_int(self.seq, 0, INT64_MAX):
            raise wrong("Trip", "seq", "an int in 0..2**63-1", self.seq)
        if self.parent_seq is not None and not is_int(self.parent_seq, 0, self.seq - 1):
            raise wrong("Trip", "parent_seq", "an int in 0..seq-1 or None", self.parent_seq)
        for name, text in (("runtime", self.runtime), ("layer", self.layer), ("kernel", self.kernel)):
            if not text or not is_text(text):
                raise wrong("Trip", name, "a non-empty str", text)
        if not is_int(self.started_ns, 0, INT64_MAX):
            raise wrong("Trip", "started_ns", "an int of ns in 0..2**63-1", self.started_ns)
        self._check_end()
        check_parts("Trip", self.outcome, self.key, self.ir, self.source, (TruncatedText, TextDigest))
        for name, value, digits in (("trace_id", self.trace_id, _HEX32), ("span_id", self.span_id, _HEX16)):
            if value is not None and (not isinstance(value, str) or not digits(value)):
                raise wrong("Trip", name, "lower-case hex digits or None", value)
        self._check_attributes()

    def __reduce__(self) -> tuple[Callable[..., Trip], tuple[()]]:
        """Be pickled and copied as the fields that make it: a view of a mapping can be neither."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return partial(Trip, **{**values, "attributes": dict(self.attributes)}), ()

    def _check_end(self) -> None:
        if self.abandoned is not None and not isinstance(self.abandoned, Abandoned):
            raise wrong("Trip", "abandoned", "an Abandoned or None", self.abandoned)
        for name, text in (("error_type", self.error_type), ("message", self.message)):
            if text is not None and not is_text(text):
                raise wrong("Trip", name, "a valid Unicode str or None", text)
        if self.message is not None and (not self.message or self.error_type is None):
            raise wrong("Trip", "message", "a non-empty str beside error_type, or None", self.message)
        ends = (self.outcome is not None) + (self.error_type is not None) + (self.abandoned is not None)
        if ends > 1:
            found = [self.outcome, self.error_type, self.abandoned]
            raise wrong("Trip", "outcome", "the only one of outcome, error_type and abandoned", found)
        if self.duration_ns is None:
            if ends:
                raise wrong("Trip", "duration_ns", f"an int on a trip that is {self.state}", None)
        elif not is_int(self.duration_ns, 0, INT64_MAX):
            raise wrong("Trip", "duration_ns", "an int of ns in 0..2**63-1 or None", self.duration_ns)
        elif not ends:
            must = "None on a trip without outcome, error_type and abandoned"
            raise wrong("Trip", "duration_ns", must, self.duration_ns)

    def _check_attributes(self) -> None:
        for name, value in self.attributes.items():
            if type(value) is str and value.isascii():
                continue  # nearly all, and this loop is a good part of the time that reading takes
            if is_text(value) or type(value) is bool or is_int(value, -INT64_MAX - 1, INT64_MAX):
                continue
            raise wrong("Trip", f"attributes[{name!r}]", "a valid Unicode str, a 64-bit int or a bool", value)

    @property
    def state(self) -> Literal["record", "failed", "abandoned", "unfinished"]:
        """How the trip ended."""
        if self.outcome is not None:
            return "record"
        if self.error_type is not None:
            return "failed"
        return "unfinished" if self.abandoned is None else "abandoned"

    @property
    def record(self) -> CompilationRecord | None:
        """The typed record, or None on a trip that failed, was abandoned or has not ended."""
        if self.outcome is None or self.duration_ns is None:
            return None
        return CompilationRecord(
            kernel=self.kernel,
            key=self.key,
            ir=None if isinstance(self.ir, TextDigest) else self.ir,
            outcome=self.outcome,
            duration=self.duration_ns,
            source=None if isinstance(self.source, TextDigest) else self.source,
        )

    def to_json(self) -> TripJson:
        """Return the trip as one JSON object."""
        return {
            "kernel": self.kernel,
            "outcome": self.outcome.value if self.outcome else None,
            "key": self.key.to_json() if self.key else None,
            "duration_ns": self.duration_ns,
            "ir": _text_to_json(self.ir),
            "source": _text_to_json(self.source),
            "runtime": self.runtime,
            "layer": self.layer,
            "state": self.state,
            "abandoned": self.abandoned.value if self.abandoned else None,
            "error_type": self.error_type,
            "message": self.message,
            "started_ns": self.started_ns,
            "session": self.session.id,
            "run": self.session.run,
            "seq": self.seq,
            "parent_seq": self.parent_seq,
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "ir_digest": _digest_to_json(self.ir),
            "source_digest": _digest_to_json(self.source),
            "attributes": dict(self.attributes),
        }

    @classmethod
    def from_json(cls, value: object) -> Trip:
        """Return the trip that `to_json` wrote.

        Raises:
            ValueError: the value is no such object; the message names the field and the value.
        """
        if not isinstance(value, dict):
            raise wrong("Trip", "json", "an object", value)
        data = cast("dict[str, Any]", value)
        expected = TripJson.__annotations__.keys()
        missing = sorted(expected - data.keys())
        if missing:
            raise wrong("Trip", "json", f"an object with the fields {missing}", sorted(data))
        unknown = sorted(data.keys() - expected)
        if unknown:
            raise wrong("Trip", "json", "an object without unknown fields", unknown)
        is_mapping = isinstance(data["attributes"], dict)
        if not is_mapping:
            raise wrong("Trip", "attributes", "an object", data["attributes"])
        trip = cls(
            session=Session(id=data["session"], run=data["run"]),
            seq=data["seq"],
            parent_seq=data["parent_seq"],
            runtime=data["runtime"],
            layer=data["layer"],
            kernel=data["kernel"],
            started_ns=data["started_ns"],
            duration_ns=data["duration_ns"],
            outcome=_enum_from_json(CompilationOutcome, "outcome", data["outcome"]),
            key=_key_from_json(data["key"]),
            ir=_text_from_json("ir", data["ir"], data["ir_digest"]),
            source=_text_from_json("source", data["source"], data["source_digest"]),
            abandoned=_enum_from_json(Abandoned, "abandoned", data["abandoned"]),
            error_type=data["error_type"],
            message=data["message"],
            trace_id=data["trace_id"],
            span_id=data["span_id"],
            attributes=data["attributes"],
        )
        if trip.state != data["state"]:
            raise wrong("Trip", "state", repr(trip.state), data["state"])
        return trip


def _text_to_json(text: Text) -> str | dict[str, str | int] | None:
    if isinstance(text, TruncatedText):
        return text.to_json()
    return None if isinstance(text, TextDigest) else text


def _digest_to_json(text: Text) -> dict[str, str | int] | None:
    return {"sha256": text.sha256, "size": text.size} if isinstance(text, TextDigest) else None


def _text_from_json(name: str, text: Any, digest: Any) -> Text:
    if digest is not None:
        data = _object_from_json(f"{name}_digest", digest, "sha256", "size")
        if text is not None:
            raise wrong("Trip", name, f"null beside {name}_digest", text)
        return TextDigest(data["sha256"], data["size"])
    if isinstance(text, dict):
        data = _object_from_json(name, cast("dict[str, Any]", text), "truncated", "sha256", "size")
        return TruncatedText(data["truncated"], data["sha256"], data["size"])
    return cast("str | None", text)


def _key_from_json(value: Any) -> KernelCacheKey | None:
    if value is None:
        return None
    data = _object_from_json("key", value, "id", "build_id")
    return KernelCacheKey.from_hex(id=data["id"], build_id=data["build_id"])


def _object_from_json(name: str, value: object, *fields: str) -> dict[str, Any]:
    data = cast("dict[str, Any]", value) if isinstance(value, dict) else None
    must = f"an object of {', '.join(fields)}, or null"
    if data is None or data.keys() != set(fields):
        raise ValueError(f"Trip.{name} must be {must}, got {value!r}")
    return data


def _enum_from_json(kind: Any, name: str, value: Any) -> Any:
    if value is None:
        return None
    values = [member.value for member in kind]
    if value not in values:
        raise wrong("Trip", name, f"one of {', '.join(values)} or null", value)
    return kind(value)
