"""The CBOR of an environment as typed records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from reprlib import repr as shortened
from typing import Any, Final, TypeAlias, TypeGuard, cast

import cbor2

from otel_kernel.cubecl import shapes
from otel_kernel.kinds import (
    CompilationBatchRecord,
    MarkRecord,
    MemoryRecord,
    Placement,
    PlannedCandidate,
    SideRecord,
    Trial,
    TuneRecord,
    UnknownRecord,
)
from otel_kernel.records import CompilationOutcome, CompilationRecord, KernelCacheKey

_OUTCOMES: Final = {
    "Compiled": CompilationOutcome.COMPILED,
    "Loaded": CompilationOutcome.LOADED,
    "Rekeyed": CompilationOutcome.REKEYED,
}
OUTCOME_NAMES: Final = {outcome: name for name, outcome in _OUTCOMES.items()}
"""What CubeCL calls an outcome."""


class DecodeError(ValueError):
    """Says which field is not as CubeCL defines it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeclSession:
    """One process's use of one environment."""

    id: int
    """Its start, ns since the Unix epoch."""
    started_unix_ms: int
    cubecl_version: str
    label: str | None
    """What the program says it is doing."""
    process: int
    os: str
    arch: str
    other: dict[str, str]
    """Fields that this version does not know, as JSON, by name."""


@dataclass(frozen=True, slots=True)
class Compilation:
    """The record of a compilation, with what this version does not know of it."""

    record: CompilationRecord
    other: dict[str, str]
    """Fields that this version does not know, as JSON, by name."""


@dataclass(frozen=True, slots=True)
class Row:
    """A record as it is stored."""

    session: int
    seq: int
    offset: int
    """Since the start of the session, ns."""
    record: Compilation | SideRecord


def load(data: bytes) -> Any:
    """Return the one value that `data` holds, or raise `DecodeError`."""
    stream = BytesIO(data)
    try:
        value = cbor2.CBORDecoder(stream).decode()
    except (cbor2.CBORDecodeError, ValueError, RecursionError, OverflowError) as error:
        raise DecodeError(f"malformed CBOR: {error}") from error
    if stream.read(1):
        raise DecodeError("malformed CBOR: more than one value")
    return value


def decode_key(data: bytes) -> tuple[int, int]:
    """Return session and seq of the key of a record, or raise `DecodeError`."""
    value = load(data)
    items = _items(value, "key")
    if len(items) != 2 or not all(type(each) is int for each in items):
        raise DecodeError(f"key must be two ints, got {shortened(value)}")
    return items[0], items[1]


def decode_session(data: bytes) -> CubeclSession:
    """Return a session, or raise `DecodeError`."""
    fields = _Fields(load(data), "session")
    return CubeclSession(
        id=fields.count("id"),
        started_unix_ms=fields.count("started_unix_ms"),
        cubecl_version=fields.text("cubecl_version"),
        label=fields.text_or_none("label"),
        process=fields.count("process"),
        os=fields.text("os"),
        arch=fields.text("arch"),
        other=fields.rest(),
    )


def decode_record(kind: str, data: bytes) -> Row:
    """Return a record of a kind, known or not, or raise `DecodeError`."""
    whole = _Fields(load(data), "row")
    stamp = _Fields(whole.take("stamp"), "stamp")
    session, seq = stamp.count("session"), stamp.count("seq")
    offset = _duration(stamp.take("offset"), "stamp.offset")
    body = whole.take("record")
    beside = {**_named("stamp", stamp.rest()), **_named("row", whole.rest())}
    decode = _KINDS.get(kind)
    try:
        record = UnknownRecord(kind=kind, body=as_json(body)) if decode is None else decode(body, beside)
    except DecodeError:
        raise
    except ValueError as error:  # a field that CubeCL may hold and our record may not
        raise DecodeError(str(error)) from error
    return Row(session, seq, offset, record)


def _named(owner: str, other: dict[str, str]) -> dict[str, str]:
    return {f"{owner}_{name}": value for name, value in other.items()}


def _compilation(body: Any, beside: dict[str, str]) -> Compilation:
    fields = _Fields(body, "record")
    kernel = fields.text("kernel")
    key = _Fields(fields.take("key"), "record.key")
    outcome = fields.take("outcome")
    if outcome not in _OUTCOMES:
        raise DecodeError(f"record.outcome must be one of {', '.join(_OUTCOMES)}, got {shortened(outcome)}")
    name = next((each for each in shapes.DURATION_FIELDS if fields.has(each)), shapes.DURATION_FIELDS[0])
    record = CompilationRecord(
        kernel=kernel,
        key=KernelCacheKey(id=key.count("id"), build_id=key.count("build_id")),
        ir=fields.text_or_none("ir"),
        outcome=_OUTCOMES[outcome],
        duration=_duration(fields.take(name), f"record.{name}"),
        source=fields.text_or_none("source"),
    )
    return Compilation(record, {**fields.rest(), **_named("key", key.rest()), **beside})


def _tune(body: Any, beside: dict[str, str]) -> TuneRecord:
    fields = _Fields(body, "record")
    entry = _Fields(fields.take("entry"), "record.entry")
    return TuneRecord(
        table=fields.text("table"),
        key=as_json(entry.take("key")),
        checksum=entry.text("checksum"),
        winner=fields.count("winner"),
        trials=tuple(_trial(each) for each in _items(fields.take("trials"), "record.trials")),
        short_circuit=fields.text_or_none("short_circuit"),
        wall=_duration(fields.take("wall"), "record.wall"),
        dry_run=fields.flag("dry_run"),
        stored=fields.flag("stored"),
        plan=tuple(_candidate(each) for each in _items(fields.take("plan", []), "record.plan")),
        other={**fields.rest(), **_named("entry", entry.rest()), **beside},
    )


def _trial(value: Any) -> Trial:
    fields = _Fields(value, "record.trials")
    return Trial(fields.text("name"), _duration(fields.take("wall"), "record.trials.wall"))


def _candidate(value: Any) -> PlannedCandidate:
    fields = _Fields(value, "record.plan")
    batch = fields.take("batch", None)
    groups = _items(fields.take("groups", []), "record.plan.groups")
    return PlannedCandidate(
        fields.text("name"), fields.count("index"), batch, tuple(_placement(each) for each in groups)
    )


def _placement(value: Any) -> Placement:
    fields = _Fields(value, "record.plan.groups")
    return Placement(
        fields.text("group"), fields.flag("ordered"), fields.take("group_priority"), fields.take("priority")
    )


def _batch(body: Any, beside: dict[str, str]) -> CompilationBatchRecord:
    fields = _Fields(body, "record")
    return CompilationBatchRecord(
        kernels=fields.count("kernels"),
        threads=fields.count("threads"),
        wall=_duration(fields.take("wall"), "record.wall"),
        other={**fields.rest(), **beside},
    )


def _mark(body: Any, beside: dict[str, str]) -> MarkRecord:
    fields = _Fields(body, "record")
    return MarkRecord(
        label=fields.text("label"),
        wall=_duration(fields.take("wall"), "record.wall"),
        other={**fields.rest(), **beside},
    )


def _memory(body: Any, beside: dict[str, str]) -> MemoryRecord:
    fields = _Fields(body, "record")
    return MemoryRecord(
        label=fields.text("label"), report=as_json(fields.take("report")), other={**fields.rest(), **beside}
    )


_KINDS: Final[dict[str, Callable[[Any, dict[str, str]], Compilation | SideRecord]]] = {
    CompilationRecord.KIND: _compilation,
    TuneRecord.KIND: _tune,
    CompilationBatchRecord.KIND: _batch,
    MarkRecord.KIND: _mark,
    MemoryRecord.KIND: _memory,
}

_MISSING: Final = object()


class _Fields:
    """A map with text keys, read field by field; what nobody took is left."""

    def __init__(self, value: Any, what: str) -> None:
        if not _is_map(value):
            raise DecodeError(f"{what} must be a map, got {shortened(value)}")
        self._left = dict(value)
        self._what = what

    def has(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str, default: Any = _MISSING) -> Any:
        value = self._left.pop(name, default)
        if value is _MISSING:
            raise DecodeError(f"{self._what}.{name} is missing")
        return value

    def text(self, name: str) -> str:
        value = self.take(name)
        if not isinstance(value, str):
            raise DecodeError(f"{self._what}.{name} must be a text, got {shortened(value)}")
        return value

    def text_or_none(self, name: str) -> str | None:
        return None if self._left.get(name) is None and self.take(name, None) is None else self.text(name)

    def count(self, name: str) -> int:
        value = self.take(name)
        if type(value) is not int or value < 0:
            raise DecodeError(f"{self._what}.{name} must be an int from 0 on, got {shortened(value)}")
        return value

    def flag(self, name: str) -> bool:
        value = self.take(name)
        if not isinstance(value, bool):
            raise DecodeError(f"{self._what}.{name} must be a bool, got {shortened(value)}")
        return value

    def rest(self) -> dict[str, str]:
        return {str(name): as_json(value) for name, value in self._left.items()}


def _is_map(value: object) -> TypeGuard[dict[Any, Any]]:
    return isinstance(value, dict)


def _items(value: Any, what: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise DecodeError(f"{what} must be an array, got {shortened(value)}")
    return list(cast("Iterable[Any]", value))


def _duration(value: Any, what: str) -> int:
    """Return a Rust `Duration` in ns."""
    fields = _Fields(value, what)
    secs, nanos = fields.count("secs"), fields.count("nanos")
    if nanos >= 10**9:
        raise DecodeError(f"{what}.nanos must be below 1000000000, got {nanos}")
    return secs * 10**9 + nanos


Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


def as_json(value: Any) -> str:
    """Return any CBOR value as JSON; what JSON lacks becomes an object with one member that starts with `$`."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Json:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else {"$float": str(value)}
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in cast("Iterable[Any]", value)]
    if _is_map(value):
        if all(isinstance(name, str) and not name.startswith("$") for name in value):
            return {name: _plain(each) for name, each in value.items()}
        return {"$map": [[_plain(name), _plain(each)] for name, each in value.items()]}
    if isinstance(value, cbor2.CBORTag):
        return {"$tag": value.tag, "$value": _plain(value.value)}
    return {"$cbor": cbor2.dumps(value).hex()}
