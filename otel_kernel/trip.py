"""The trip while it runs: opened before the wrapped call, filled by readers, closed after it."""

from __future__ import annotations

import contextvars
import functools
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.instrumentation.utils import is_instrumentation_enabled
from opentelemetry.trace import Span

from otel_kernel import faults, mapping, pipeline, semconv, session
from otel_kernel.ending import complete, locate, typed
from otel_kernel.pipeline import Pipeline
from otel_kernel.records import (
    INT64_MAX,
    Abandoned,
    AttributeValue,
    CompilationOutcome,
    KernelCacheKey,
    RecordLevel,
    Session,
    Text,
    TextDigest,
    escape,
)
from otel_kernel.spans import ids, trip_began, trip_ended

if TYPE_CHECKING:
    from otel_kernel.start_events import StartEvents

MESSAGE_LIMIT = 256
"""Characters of an error's message that travel, at level full."""

DIGEST_LIMIT = 1024 * 1024
"""Characters up to which a text is digested at level basic."""

_current: contextvars.ContextVar[OpenTrip | None] = contextvars.ContextVar("otel_kernel_trip", default=None)

enclosing: contextvars.ContextVar[Sequence[Span]] = contextvars.ContextVar("otel_kernel_spans", default=())
"""Our span around this code in each provider: a private provider finds its parent in no context."""

OWN_VARIABLES: tuple[contextvars.ContextVar[Any], ...] = (_current, enclosing)
"""Our part of Python's context, for work that goes on in another thread."""


_Tokens: TypeAlias = (
    "tuple[contextvars.Token[Any], contextvars.Token[OpenTrip | None], contextvars.Token[Sequence[Span]]]"
)


@dataclass(slots=True)
class Begin:
    """What a reader knows before the call: yielding one says "this call is a trip"."""

    kernel: str
    layer: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict[str, AttributeValue])
    started_ns: int | None = None
    """Wall clock of the start, where work of the trip has begun elsewhere before the call."""
    absorbs: frozenset[str] = frozenset()
    """Runtimes whose compilers this trip calls: what they do inside of it is no trip of its own."""


class OpenTrip:
    """A trip in flight. Readers fill it; at the end it becomes a `Trip` for spans and sinks.

    After the call `result` or `error` is what it gave. A reader sets `outcome` first, so that a fault in
    what follows costs fields and not the record.
    """

    # What most trips leave as it is costs nothing until it is set.
    outcome: CompilationOutcome | None = None
    abandoned: Abandoned | None = None
    key: KernelCacheKey | None = None
    ir: Text = None
    source: Text = None
    result: object = None
    error: BaseException | None = None
    held = False
    """Whether the trip goes on when the call has returned; who holds it calls `finish`."""
    duration_ns = 0
    """How long the clock ran."""
    code_digest: str | None = None
    """What `identity` is made from."""
    error_type: str | None = None
    """Class of the exception that is told of, once the trip has ended."""
    message: str | None = None
    """What is told of that exception."""
    trace_id: str | None = None
    span_id: str | None = None
    _detail: str | None = None
    _tokens: _Tokens | None = None
    _started = 0
    _ticket = -1

    def __init__(self, runtime: str, begin: Begin, state: Pipeline) -> None:
        self.session: Session = session.current()
        self.parent = current()
        self.seq = session.next_seq()
        self.runtime = runtime
        self.kernel = escape(begin.kernel)
        self.layer = begin.layer
        self.absorbs = begin.absorbs
        if not self.kernel or not self.layer:
            raise ValueError(f"a trip needs a kernel and a layer, got {self.kernel!r} and {self.layer!r}")
        self.pipeline = state
        self.level = state.level
        self.started_ns = time.time_ns() if begin.started_ns is None else begin.started_ns
        self.attributes: dict[str, AttributeValue] = {}
        """What `set` has set; at the end also what the core adds."""
        self.components: dict[str, str] = {}
        self.stages: dict[str, int] = {}
        self.spans: list[Span] = []
        self.notes: dict[str, object] = {}
        """For probes to leave word for the reader of the trip."""
        for name, value in begin.attributes.items():
            self.set(name, value)

    def set(self, name: str, value: AttributeValue | None) -> None:
        """Set an attribute under its name in `semconv`; None sets nothing.

        Raises:
            ValueError: the name is not defined there, or the value has another type or no place in 64 bits.
        """
        if value is None:
            return
        definition = semconv.definition(name)
        if definition is None or definition.family:
            raise ValueError(f"{name} is not defined in semconv as an attribute")
        if type(value) is not definition.type:
            raise ValueError(f"{name} must be {definition.type.__name__}, got {value!r}")
        if type(value) is int and not -INT64_MAX - 1 <= value <= INT64_MAX:
            raise ValueError(f"{name} must be an int of 64 bits, got {value!r}")
        self.attributes[name] = escape(value) if isinstance(value, str) else value

    def set_key(
        self, *, build: str, rest: str, components: Mapping[str, str], entry: str | None = None
    ) -> None:
        """Set the key from the runtime's own key texts.

        Args:
            build: names compiler and build, readable; it becomes `build` too.
            rest: the rest of the runtime's key.
            components: the parts of the key by name; long ones travel as digests.
            entry: the runtime's own key text.
        """
        self.key = KernelCacheKey.of_texts(build=build, rest=rest)
        self.components = {_family_name(name): escape(value) for name, value in components.items()}
        self.set(semconv.STORE_ENTRY, entry)

    def set_ir(self, read: str | Callable[[], str]) -> None:
        """Set the kernel's ir; a callable is called at level full only. Never on a loaded trip."""
        if self.outcome is not CompilationOutcome.LOADED:
            self.ir = self._text(read)

    def set_source(self, read: str | Callable[[], str]) -> None:
        """Set what the backend compiled; a callable is called at level full only."""
        self.source = self._text(read)

    def _text(self, read: str | Callable[[], str]) -> Text:
        if self.level is RecordLevel.FULL:
            return escape(read if isinstance(read, str) else read())
        return TextDigest.of(escape(read)) if isinstance(read, str) and len(read) <= DIGEST_LIMIT else None

    def set_code_digest(self, digest: str) -> None:
        """Set the digest of the kernel's code from which `identity` is made."""
        self.code_digest = digest

    def add_stage(self, name: str, duration_ns: int) -> None:
        """Add the time of a stage in ns, an int; a second time of one name adds up.

        Raises:
            ValueError: the time is no int.
        """
        if type(duration_ns) is not int:
            raise ValueError(f"the time of stage {name} must be an int of ns, got {duration_ns!r}")
        name = _family_name(name)
        self.stages[name] = self.stages.get(name, 0) + max(0, duration_ns)

    def abandon(self, why: Abandoned) -> None:
        """Say that the exception that left the call is the runtime's control flow."""
        self.abandoned = why

    def last(self, duration_ns: int) -> None:
        """Say how long the trip took, in ns, where the clock here has not seen all of its work."""
        self.duration_ns = max(0, duration_ns)

    def say_of_error(self, detail: str) -> None:
        """Say of a failure what holds no kernel text: a place `file:line`, a compiler's error code."""
        self._detail = escape(detail)

    def begin(self) -> None:
        """Tell spans and sinks, then run."""
        try:
            self._start_spans()
            if self.pipeline.sinks:
                self._read_ids()
                self._tell_start()
            if self.pipeline.events is not None and self.parent is None:
                self._emit_start(self.pipeline.events)
            self.resume()
        except BaseException:  # a trip that could not begin is left: its spans end as they are
            self.stop(None, None)
            self._end_bare()
            raise

    def _start_spans(self) -> None:
        around = enclosing.get()
        for index, spans in enumerate(self.pipeline.spans):
            parent = around[index] if index < len(around) else None
            try:
                span = spans.start(self, parent)
            except Exception:
                faults.caught("starting a span")
                span = trace.INVALID_SPAN
            self.spans.append(span)

    def _emit_start(self, events: StartEvents) -> None:
        try:
            locate(self)
            attributes = {**mapping.start_attributes(self), **self.attributes}
            events.emit(self.runtime, self.kernel, attributes, self.spans[0])
        except Exception:
            faults.caught("emitting an event")

    def _tell_start(self) -> None:
        told = [sink for sink in self.pipeline.sinks if sink.wants_start]
        if not told:
            return
        locate(self)
        trip = typed(self, None)
        for sink in told:
            try:
                sink.started(trip)
            except Exception:
                faults.caught(f"{type(sink).__name__}.started")

    def resume(self) -> None:
        """Become the current trip and let the clock run; after a `stop` it runs on."""
        span = self.spans[0]
        # Without a span of ours the program's own one stays current.
        around = otel_context.get_current() if span is trace.INVALID_SPAN else trace.set_span_in_context(span)
        self._tokens = (
            otel_context.attach(around),
            _current.set(self),
            enclosing.set(self.spans),
        )
        self._ticket = trip_began()
        self._started = time.perf_counter_ns()

    def _read_ids(self) -> None:
        try:
            self.trace_id, self.span_id = ids(self.spans[0])
        except Exception:
            faults.caught("reading the ids of a span")

    @property
    def parent_seq(self) -> int | None:
        """The number of the trip inside which this one runs."""
        return self.parent.seq if self.parent is not None else None

    @property
    def is_running(self) -> bool:
        """Whether the wrapped call goes on, or the load that the trip has waited for."""
        return self._tokens is not None

    def stop(self, result: object, error: BaseException | None) -> int:
        """Stop the clock and stop being the current trip: what readers do now belongs to no trip.

        Returns:
            The ns that the clock ran since `begin` or `resume`.
        """
        ran = max(0, time.perf_counter_ns() - self._started)
        self.duration_ns += ran
        self.result, self.error = result, error
        if self._tokens is not None:
            context_token, trip_token, enclosing_token = self._tokens
            self._tokens = None
            enclosing.reset(enclosing_token)
            _current.reset(trip_token)
            otel_context.detach(context_token)
        trip_ended(self._ticket)
        locate(self)
        return ran

    def finish(self) -> None:
        """Hand the trip, as the readers have left it, to spans and sinks."""
        try:
            if self.session is session.current():  # in a forked child the trip is the parent's to tell of
                self._tell()
        finally:
            # Nothing of the program's stays alive through us.
            self.result = self.error = self.parent = self.ir = self.source = None
            self.notes.clear()

    def _tell(self) -> None:
        state = self.pipeline
        try:
            self._settle_end()
            complete(self)
        except BaseException:
            self._end_bare()
            raise
        event = self.error if self.error_type is not None and self.level is RecordLevel.FULL else None
        for spans, span in zip(state.spans, self.spans, strict=True):
            try:
                spans.end(span, self, inline_limit=state.options.inline_limit, texts=state.texts, error=event)
            except Exception:
                faults.caught("ending a span")
        if not state.sinks:
            return
        trip = typed(self, self.duration_ns)
        for sink in state.sinks:
            try:
                sink.finished(trip)
            except Exception:
                faults.caught(f"{type(sink).__name__}.finished")

    def _settle_end(self) -> None:
        """Leave one of outcome, error and abandoned, whatever readers have set."""
        if self.abandoned is None:
            if self.error is not None and self.parent is not None:
                # Only what leaves the outermost trip is an error: whoever called this one may handle it.
                self.abandoned = Abandoned.NESTED
            elif self.error is None and self.outcome is None:
                self.abandoned = Abandoned.UNREAD
        if self.abandoned is not None or self.error is not None:
            self.outcome = None
        if self.error is not None and self.abandoned is None:
            self.error_type = error_type(self.error)
            self.message = self._message(self.error_type, self.error)

    def _end_bare(self) -> None:
        for span in self.spans:
            try:
                span.end()
            except Exception:
                faults.caught("ending a span")

    def _message(self, message: str, error: BaseException) -> str:
        if self._detail:
            message = f"{message} at {self._detail}"
        if self.level is RecordLevel.FULL:
            try:
                text = str(error)
            except Exception:
                text = ""
            if text:
                message = f"{message}: {escape(text[:MESSAGE_LIMIT])}"
        return message


_FAMILY_NAME = re.compile(r"[^a-z0-9_]+")


@functools.lru_cache(maxsize=1024)
def _family_name(name: str) -> str:
    return _FAMILY_NAME.sub("_", name.lower()).strip("_") or "_"


def error_type(error: BaseException) -> str:
    """Return the class of an exception as `error.type` wants it: `module.qualname`, builtins bare."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return escape(name)


def current() -> OpenTrip | None:
    """Return the trip inside which this code runs, or None."""
    trip = _current.get()
    if trip is None or not trip.is_running:
        return None  # a task or a thread may have the context of a trip that is over
    # A forked child has the context of its parent's thread, with a trip that is not its own.
    return trip if trip.session is session.current() else None


_workers: list[Callable[[], bool]] = []


def tell_nothing_where(is_worker: Callable[[], bool]) -> None:
    """Leave the trips of the compile workers of a runtime to the process that they work for.

    Args:
        is_worker: whether this process is such a worker, asked at every trip: a fork changes the answer.
    """
    if is_worker not in _workers:
        _workers.append(is_worker)


def wanted() -> Pipeline | None:
    """Return the pipeline if trips are wanted here and now.

    None at level off, under suppression and in a compile worker.
    """
    state = pipeline.current()
    if state.level is RecordLevel.OFF or not is_instrumentation_enabled():
        return None
    for is_worker in _workers:
        if is_worker():
            return None
    return state
