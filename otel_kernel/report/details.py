"""One trip for people, with every field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Final

from otel_kernel import semconv
from otel_kernel.records import AttributeValue, TextDigest, Trip, TruncatedText
from otel_kernel.report.words import duration, moment, safe

_LABEL: Final = 14


def print_trip(trip: Trip, file: IO[str]) -> None:
    """Print all that is known of a trip; fields that are not set are left out."""
    key = trip.key.to_json() if trip.key else {}
    fields: dict[str, object] = {
        "kernel": trip.kernel,
        "outcome": trip.outcome.value if trip.outcome else trip.state,
        "abandoned": trip.abandoned.value if trip.abandoned else None,
        "error type": trip.error_type,
        "message": trip.message,
        "duration": f"{duration(trip.duration_ns)} ({trip.duration_ns} ns)"
        if trip.duration_ns is not None
        else None,
        "started": f"{moment(trip.started_ns)} ({trip.started_ns} ns)",
        "runtime": trip.runtime,
        "layer": trip.layer,
        "key id": key.get("id"),
        "key build id": key.get("build_id"),
        "session": trip.session.id,
        "run": trip.session.run,
        "seq": trip.seq,
        "parent seq": trip.parent_seq,
        "trace id": trip.trace_id,
        "span id": trip.span_id,
    }
    _print_fields(fields, file)
    components = _family(trip, semconv.KEY_COMPONENT)
    stages = {
        name: duration(value)
        for name, value in _family(trip, semconv.STAGE).items()
        if isinstance(value, int)
    }
    others = {
        name.removeprefix(semconv.NAMESPACE): value
        for name, value in trip.attributes.items()
        if not name.startswith((semconv.KEY_COMPONENT, semconv.STAGE))
    }
    for title, members in (("key components", components), ("stages", stages), ("attributes", others)):
        if members:
            file.write(f"\n{title}\n")
            _print_fields(members, file, indent="  ")
    for title, text in (("ir", trip.ir), ("source", trip.source)):
        if text is not None:
            _print_text(title, text, file)


def _family(trip: Trip, prefix: str) -> dict[str, AttributeValue]:
    return {
        name.removeprefix(prefix): value for name, value in trip.attributes.items() if name.startswith(prefix)
    }


def _print_fields(fields: Mapping[str, object], file: IO[str], indent: str = "") -> None:
    width = max(_LABEL, *(len(name) for name in fields))
    for name, value in fields.items():
        if value is not None:
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            file.write(f"{indent}{safe(name):{width}}  {safe(shown)}\n")


def _print_text(title: str, text: str | TruncatedText | TextDigest, file: IO[str]) -> None:
    if isinstance(text, TextDigest):
        file.write(f"\n{title}: not kept, {text.size} bytes, sha256 {text.sha256}\n")
        return
    if isinstance(text, TruncatedText):
        kept = len(text.prefix.encode())
        file.write(f"\n{title}: the first {kept} of {text.size} bytes, sha256 {text.sha256}\n")
        text = text.prefix
    else:
        file.write(f"\n{title}\n")
    file.write(safe(text, keep="\n\t"))
    if text and not text.endswith("\n"):
        file.write("\n")
