"""Records as finished spans of the SDK."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from otel_kernel import __version__, mapping, record_mapping, semconv
from otel_kernel.cubecl.decoding import CubeclSession
from otel_kernel.cubecl.trips import RUNTIME
from otel_kernel.kinds import Stamped, TuneRecord, title_of, wall_of
from otel_kernel.records import AttributeValue, Session, Trip
from otel_kernel.replay import ids
from otel_kernel.replay.nesting import Replayed
from otel_kernel.texts import TextFiles

_SERVICE_NAME: Final = "service.name"
_OS_TYPES: Final = {"macos": "darwin"}
"""OpenTelemetry's name of an operating system where it is not Rust's."""
_ARCHS: Final = {"x86_64": "amd64", "aarch64": "arm64", "arm": "arm32", "powerpc64": "ppc64"}
"""OpenTelemetry's name of a processor where it is not Rust's."""


def resource_of(session: Session, details: CubeclSession | None, location: str) -> Resource:
    """Return the resource that a session stands for.

    Args:
        session: the session.
        details: what the environment says of it, or None where it is not listed any more.
        location: of the environment.
    """
    attributes: dict[str, str | int] = {
        "service.instance.id": session.id,
        semconv.STORE_LOCATION: location,
    }
    if "OTEL_SERVICE_NAME" not in os.environ and _SERVICE_NAME not in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    ):
        attributes[_SERVICE_NAME] = RUNTIME
    if details is not None:
        attributes |= {
            "process.pid": details.process,
            "process.runtime.name": RUNTIME,
            "process.runtime.version": details.cubecl_version,
            "os.type": _OS_TYPES.get(details.os, details.os),
            "host.arch": _ARCHS.get(details.arch, details.arch),
        }
        if details.label is not None:
            attributes[semconv.SESSION_LABEL] = details.label
    return Resource.create().merge(Resource(attributes))


def spans_of(
    record: Replayed, parent_seq: int | None, resource: Resource, texts: TextFiles | None
) -> Iterator[ReadableSpan]:
    """Yield the span of a record, and those of its trials where it is a tune.

    Args:
        record: the record.
        parent_seq: the record of the same session inside which it ran.
        resource: that of its session.
        texts: where texts go that are too long for a span.
    """
    session = record.session.id
    parent = None if parent_seq is None else _context(session, ids.span_id(session, parent_seq))
    context = _context(session, ids.span_id(session, record.seq))
    if isinstance(record, Trip):
        attributes: Mapping[str, AttributeValue] = mapping.to_attributes(record, texts=texts)
        name, wall = f"compile {record.kernel}", record.duration_ns or 0
    else:
        attributes, name, wall = (
            record_mapping.to_attributes(record),
            title_of(record.record),
            wall_of(record.record),
        )
    yield _span(name, context, parent, resource, attributes, record.started_ns, wall)
    if isinstance(record, Stamped) and isinstance(record.record, TuneRecord):
        yield from _trials(record, record.record, context, resource)


def _trials(
    record: Stamped, tune: TuneRecord, parent: SpanContext, resource: Resource
) -> Iterator[ReadableSpan]:
    """Yield the trials of a tune, one after another: a record says how long each took, and in which order."""
    started_ns = record.started_ns
    for index, trial in enumerate(tune.trials):
        attributes: dict[str, AttributeValue] = {
            semconv.RUNTIME: record.runtime,
            semconv.ROLE: record_mapping.TRIAL_ROLE,
            semconv.SESSION_ID: record.session.id,
            semconv.SESSION_RUN: record.session.run,
            semconv.TRIAL_NAME: trial.name,
            semconv.TRIAL_INDEX: index,
        }
        context = _context(record.session.id, ids.trial_span_id(record.session.id, record.seq, index))
        yield _span(f"try {trial.name}", context, parent, resource, attributes, started_ns, trial.wall)
        started_ns += trial.wall


def _context(session_id: str, span_id: int) -> SpanContext:
    return SpanContext(
        ids.trace_id(session_id), span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )


def _span(
    name: str,
    context: SpanContext,
    parent: SpanContext | None,
    resource: Resource,
    attributes: Mapping[str, AttributeValue],
    started_ns: int,
    wall_ns: int,
) -> ReadableSpan:
    return ReadableSpan(
        name=name,
        context=context,
        parent=parent,
        resource=resource,
        attributes=attributes,
        kind=SpanKind.INTERNAL,
        instrumentation_scope=InstrumentationScope(semconv.SCOPE_PREFIX + RUNTIME, __version__),
        status=Status(StatusCode.UNSET),
        start_time=started_ns,
        end_time=started_ns + wall_ns,
    )
