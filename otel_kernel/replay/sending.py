"""Sends the spans of an environment to an OTLP endpoint."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from otel_kernel.cubecl.environment import Environment
from otel_kernel.cubecl.trips import session_of, to_ours
from otel_kernel.inputs.problems import InputError, Problem
from otel_kernel.replay.nesting import Replayed, parents
from otel_kernel.texts import TextFiles

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

BATCH: Final = 256
"""Spans that are handed on at once; a request of many bytes is split once more."""

_EXPORTERS_LOGGER: Final = "opentelemetry"


@dataclass(frozen=True, slots=True)
class SessionToSend:
    """What is to be sent of one session."""

    number: int
    """In CubeCL."""
    records: Sequence[Replayed]
    """All that may enclose others, and all that is to be sent."""
    wanted: frozenset[int] | None
    """`seq` of those to send; None sends all."""


class Sender:
    """Sends spans to one endpoint; to be closed."""

    def __init__(self, url: str, texts: TextFiles | None = None) -> None:
        """Make the exporter.

        Args:
            url: the endpoint.
            texts: where texts go that are too long for a span.

        Raises:
            InputError: the URL is no OTLP endpoint, or what sends to one is not installed.
        """
        from otel_kernel.otlp import exporter_to

        try:
            self._exporter: SpanExporter = exporter_to(url)
        except ValueError as error:
            raise InputError(str(error)) from None
        except ImportError as error:
            raise InputError(f'OTLP needs more packages ({error}): pip install "otel-kernel[otlp]"') from None
        self._url = url
        self._texts = texts
        self._said = _Said()
        logging.getLogger(_EXPORTERS_LOGGER).addHandler(self._said)
        logging.getLogger(_EXPORTERS_LOGGER).propagate = False
        self.spans = 0
        """Spans sent so far."""

    def close(self) -> None:
        """Shut the exporter down."""
        self._exporter.shutdown()
        logging.getLogger(_EXPORTERS_LOGGER).removeHandler(self._said)
        logging.getLogger(_EXPORTERS_LOGGER).propagate = True

    def send(self, environment: Environment, session: SessionToSend) -> None:
        """Send the spans of a session.

        Raises:
            InputError: the endpoint did not take them.
        """
        from otel_kernel.replay.spans import resource_of, spans_of

        details = environment.sessions.get(session.number)
        resource = resource_of(session_of(session.number), details, str(environment.path.resolve()))
        enclosing = parents(session.records)
        batch: list[ReadableSpan] = []
        for record in session.records:
            if session.wanted is not None and record.seq not in session.wanted:
                continue
            batch.extend(spans_of(record, enclosing.get(record.seq), resource, self._texts))
            if len(batch) >= BATCH:
                self._export(batch)
                batch = []
        if batch:
            self._export(batch)

    def _export(self, batch: Sequence[ReadableSpan]) -> None:
        from opentelemetry.sdk.trace.export import SpanExportResult

        if self._exporter.export(batch) is not SpanExportResult.SUCCESS:
            raise InputError(
                f"{self._url} did not take the spans ({self._said.last or 'no reason is known'}): replay them once "
                f"more, those that arrived keep their ids"
            )
        self.spans += len(batch)


class _Said(logging.Handler):
    """Keeps what an exporter logs, to be said in one line."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = " ".join(record.getMessage().split())


def read_session(
    environment: Environment, number: int, wanted: frozenset[int]
) -> tuple[list[Replayed], list[Problem]]:
    """Return the records of a session of which `seq` is wanted, and a problem for each that is lost."""
    records: list[Replayed] = []
    problems: list[Problem] = []
    details = environment.sessions.get(number)
    for row in environment.rows(frozenset((number, seq) for seq in wanted)):
        if isinstance(row, Problem):
            problems.append(row)
            continue
        try:
            records.append(to_ours(row, details))
        except ValueError as error:
            problems.append(Problem(f"{environment.path}: [{number}, {row.seq}]", str(error)))
    return records, problems


def by_session(stamps: Iterable[tuple[int, int, str]]) -> Mapping[int, dict[int, str]]:
    """Return kind by `seq` by session, sessions in their order."""
    sessions: dict[int, dict[int, str]] = {}
    for session, seq, kind in stamps:
        sessions.setdefault(session, {})[seq] = kind
    return sessions


def environments_in(path: Path) -> list[Path]:
    """Return the environments that `path` stands for: itself, or all of a folder."""
    return sorted(path.glob("*.db")) if path.is_dir() else [path]
