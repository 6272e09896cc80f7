"""Trips out of Jaeger, by its API of version 3, or by the one that its user interface uses.

The latter holds times in microseconds: start times are cut to those, while durations come whole from their
attribute.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from functools import partial
from reprlib import repr as shortened
from typing import Any, Final, cast

from otel_kernel.inputs import otlp_json
from otel_kernel.inputs.http import HttpApi
from otel_kernel.inputs.otlp_json import is_list, is_object
from otel_kernel.inputs.problems import InputError, Problem
from otel_kernel.inputs.urls import BackendUrl, backend_url
from otel_kernel.inputs.windows import in_windows
from otel_kernel.kinds import Stamped
from otel_kernel.mapping import NotATrip, Reject, SpanView
from otel_kernel.record_mapping import read_any
from otel_kernel.records import Trip
from otel_kernel.texts import TextFiles

LIMIT: Final = 200
"""Traces by default in one answer."""

_PARAMETERS: Final = ("service", "since", "until", "trace", "limit", "api", "timeout")
_SMALLEST_NS: Final = 1000
_LEGACY_TYPES: Final = {"string": str, "bool": bool, "int64": int, "float64": float}


class Jaeger:
    """The traces of some or all services in a time, of which each counts once."""

    def __init__(self, spec: str, scheme: str) -> None:
        """Take the URL apart; nothing is asked yet.

        Raises:
            InputError: it is not right.
        """
        url: BackendUrl = backend_url(spec, scheme, *_PARAMETERS)
        self._url = url
        self._api = HttpApi(url)
        self._limit = int(url.number("limit", LIMIT))
        self._start, self._end = url.times()
        version = url.text("api", "v3")
        if version not in ("v3", "legacy"):
            raise InputError(f"{url.name}: api must be v3 or legacy, got {version!r}")
        self._is_legacy = version == "legacy"
        self._seen: set[str] = set()
        self._problems: list[Problem] = []

    def read(self, texts: TextFiles | None) -> Iterator[Trip | Stamped | NotATrip | Problem]:
        """Yield what the spans stand for.

        Raises:
            InputError: Jaeger cannot be asked.
        """
        for answer in self._answers():
            if self._is_legacy:
                yield from read_legacy(answer, self._url.name, texts)
            else:
                yield from otlp_json.read_request(answer, self._url.name, texts)
            yield from self._problems
            self._problems.clear()

    def _answers(self) -> Iterator[Any]:
        traces = self._url.parameters.get("trace")
        if traces:
            for trace in traces:
                answer = self._trace(trace)
                if answer is None:
                    self._problems.append(Problem(self._url.name, f"there is no trace {trace}"))
                yield unseen(answer, self._seen, is_legacy=self._is_legacy)
            return
        for service in self._url.parameters.get("service") or self._services():
            ask = partial(self._found, service)
            yield from in_windows(self._start, self._end, ask, _SMALLEST_NS, self._too_many)

    def _too_many(self, start_ns: int) -> None:
        reason = (
            f"more than {self._limit} traces start at {_rfc3339(start_ns)}: the others are lost; raise limit="
        )
        self._problems.append(Problem(self._url.name, reason))

    def _services(self) -> list[str]:
        answer = self._api.json("/api/services" if self._is_legacy else "/api/v3/services")
        services = answer.get("data" if self._is_legacy else "services") if is_object(answer) else None
        if answer is None or not isinstance(services, (list, type(None))):
            other = "v3" if self._is_legacy else "legacy"
            raise InputError(f"{self._url.name} does not list services as Jaeger does: try api={other}")
        return [str(service) for service in cast("list[object]", services or [])]

    def _trace(self, trace: str) -> Any:
        if self._is_legacy:
            return self._api.json(f"/api/traces/{trace}", [("raw", "true")])
        return _result(self._api.json(f"/api/v3/traces/{trace}", [("raw_traces", "true")]))

    def _found(self, service: str, start_ns: int, end_ns: int) -> tuple[Any, bool]:
        if self._is_legacy:
            times = [("start", str(start_ns // 1000)), ("end", str(end_ns // 1000))]
            query = [("service", service), *times, ("limit", str(self._limit + 1)), ("raw", "true")]
            answer = self._api.json("/api/traces", query)
        else:
            # Raw, because Jaeger corrects the clocks of hosts otherwise.
            query = [
                ("query.service_name", service),
                ("query.start_time_min", _rfc3339(start_ns)),
                ("query.start_time_max", _rfc3339(end_ns)),
                ("query.num_traces", str(self._limit + 1)),
                ("query.raw_traces", "true"),
            ]
            answer = _result(self._api.json("/api/v3/traces", query))
        traces = set(_trace_ids(answer, self._is_legacy))
        return unseen(answer, self._seen, is_legacy=self._is_legacy), len(traces) > self._limit


def unseen(answer: Any, seen: set[str], *, is_legacy: bool) -> Any:
    """Return an answer without the traces in `seen`, to which its own are added; it always holds whole traces."""
    traces = set(_trace_ids(answer, is_legacy))
    known = traces & seen
    seen |= traces
    if answer is None or (traces and traces == known):
        return {"data": []} if is_legacy else {"resourceSpans": []}
    if known:
        _remove(answer, known, is_legacy)
    return answer


def _result(answer: Any) -> Any:
    return answer.get("result", answer) if is_object(answer) else answer


def _rfc3339(ns: int) -> str:
    seconds, rest = divmod(ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def _span_lists(answer: Any, is_legacy: bool) -> Iterator[list[Any]]:
    """Yield the lists of spans in an answer as far as it is as Jaeger has it; what is not is told when it is read."""
    try:
        if is_legacy:
            for trace in answer.get("data") or ():
                yield trace["spans"]
        else:
            for resource_spans in answer.get("resourceSpans") or ():
                for scope_spans in resource_spans.get("scopeSpans") or ():
                    yield scope_spans["spans"]
    except (AttributeError, KeyError, TypeError):
        return


def _trace_ids(answer: Any, is_legacy: bool) -> Iterator[str]:
    name = "traceID" if is_legacy else "traceId"
    for spans in _span_lists(answer, is_legacy):
        if is_list(spans):
            yield from (str(span[name]) for span in spans if is_object(span) and name in span)


def _remove(answer: Any, traces: set[str], is_legacy: bool) -> None:
    name = "traceID" if is_legacy else "traceId"
    for spans in _span_lists(answer, is_legacy):
        if is_list(spans):
            spans[:] = [span for span in spans if not is_object(span) or str(span.get(name)) not in traces]


def read_legacy(
    answer: Any, where: str, texts: TextFiles | None = None
) -> Iterator[Trip | Stamped | NotATrip | Problem]:
    """Yield what the spans of an answer of the legacy API stand for, and a problem for each that is lost.

    Args:
        answer: parsed JSON.
        where: names the answer in problems.
        texts: where to look for texts that a span does not carry whole.
    """
    try:
        for error in answer.get("errors") or ():
            yield Problem(where, f"Jaeger says {shortened(error)}")
        spans = [span for trace in answer["data"] or () for span in trace["spans"]]
    except (AttributeError, KeyError, TypeError):
        yield Problem(where, f"not an answer of Jaeger: {shortened(answer)}")
        return
    for span in spans:
        try:
            found = read_any(_legacy_view(span), texts)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            yield Problem(where, f"malformed span {shortened(span)}: {error or type(error).__name__}")
            continue
        if isinstance(found, Reject):
            yield Problem(where, f"{found.reason} (trace {found.trace_id}, span {found.span_id})")
        else:
            yield found


def _legacy_view(span: Any) -> SpanView:
    attributes: dict[str, object] = {}
    for tag in span.get("tags") or ():
        kind = _LEGACY_TYPES.get(tag.get("type"))
        attributes[tag["key"]] = tag["value"] if kind is None else kind(tag["value"])
    return SpanView(
        scope=str(attributes.get("otel.scope.name") or attributes.get("otel.library.name") or ""),
        attributes=attributes,
        start_ns=int(span["startTime"]) * 1000,
        trace_id=str(span["traceID"]).lower().zfill(32),
        span_id=str(span["spanID"]).lower().zfill(16),
        description=str(attributes.get("otel.status_description") or ""),
    )
