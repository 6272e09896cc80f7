"""Trips out of Tempo, by its search and its API of version 2."""

from __future__ import annotations

from collections.abc import Iterator
from reprlib import repr as shortened
from typing import Any, Final

from otel_kernel import semconv
from otel_kernel.inputs import otlp_json
from otel_kernel.inputs.http import HttpApi
from otel_kernel.inputs.otlp_json import is_object
from otel_kernel.inputs.problems import InputError, Problem
from otel_kernel.inputs.urls import backend_url
from otel_kernel.inputs.windows import in_windows
from otel_kernel.kinds import Stamped
from otel_kernel.mapping import NotATrip
from otel_kernel.records import Trip
from otel_kernel.texts import TextFiles

LIMIT: Final = 1000
"""Traces by default in one answer of the search."""

QUERY: Final = f'{{ span.{semconv.ROLE} = "trip" }}'
"""What is searched for, in TraceQL."""

_PARAMETERS: Final = ("q", "since", "until", "trace", "limit", "timeout")
_SECOND_NS: Final = 1_000_000_000


class Tempo:
    """The traces that a search finds in a time."""

    def __init__(self, spec: str, scheme: str) -> None:
        """Take the URL apart; nothing is asked yet.

        Raises:
            InputError: it is not right.
        """
        url = backend_url(spec, scheme, *_PARAMETERS)
        self._url = url
        self._api = HttpApi(url)
        self._limit = int(url.number("limit", LIMIT))
        self._start, self._end = url.times()
        self._seen: set[str] = set()
        self._problems: list[Problem] = []

    def read(self, texts: TextFiles | None) -> Iterator[Trip | Stamped | NotATrip | Problem]:
        """Yield what the spans stand for.

        Raises:
            InputError: Tempo cannot be asked.
        """
        for trace in self._traces():
            answer = self._api.json(f"/api/v2/traces/{trace}", [] if self._is_named else self._times)
            where = f"{self._url.name}, trace {trace}"
            if answer is None:
                yield Problem(where, "there is no such trace")
                continue
            if not is_object(answer):
                yield Problem(where, f"not an answer of Tempo: {shortened(answer)}")
                continue
            if str(answer.get("status", "")).upper().endswith("PARTIAL"):
                yield Problem(
                    where, f"Tempo gives a part of it only: {answer.get('message') or 'no reason given'}"
                )
            yield from otlp_json.read_request(request_of(answer), where, texts)
        yield from self._problems

    @property
    def _is_named(self) -> bool:
        return "trace" in self._url.parameters

    @property
    def _times(self) -> list[tuple[str, str]]:
        return [("start", str(self._start // _SECOND_NS)), ("end", str(-(-self._end // _SECOND_NS)))]

    def _traces(self) -> Iterator[str]:
        if self._is_named:
            yield from self._url.parameters["trace"]
            return
        for found in in_windows(self._start, self._end, self._search, _SECOND_NS, self._too_many):
            for trace in found:
                if trace not in self._seen:
                    self._seen.add(trace)
                    yield trace

    def _too_many(self, start_ns: int) -> None:
        reason = f"more than {self._limit} traces in the second {start_ns // _SECOND_NS}: the others are lost; raise limit="
        self._problems.append(Problem(self._url.name, reason))

    def _search(self, start_ns: int, end_ns: int) -> tuple[list[str], bool]:
        query = [
            ("q", self._url.text("q", QUERY)),
            ("start", str(start_ns // _SECOND_NS)),
            ("end", str(-(-end_ns // _SECOND_NS))),
            ("limit", str(self._limit + 1)),
            ("spss", "1"),
        ]
        answer = self._api.json("/api/search", query)
        try:
            traces = [str(trace["traceID"]).lower().zfill(32) for trace in answer.get("traces") or ()]
        except (AttributeError, KeyError, TypeError):
            raise InputError(
                f"{self._url.name} does not answer a search as Tempo does: {shortened(answer)}"
            ) from None
        return traces, len(traces) > self._limit


def request_of(answer: dict[str, Any]) -> object:
    """Return the part of an answer that is a request of OTLP; older versions name it otherwise."""
    trace = answer.get("trace", answer)
    if is_object(trace) and "batches" in trace:
        return {"resourceSpans": trace["batches"]}
    return trace or {"resourceSpans": []}
