"""What wrapping a point means.

`trip` opens a trip, `probe` adds to the one that is open, `notice` needs none, `parent` puts a span around
trips. Further: `carry.carry` takes the context along to another thread, `pending.finish` lets a trip go on
until its kernel is on the device, `Point.copies` reaches references that were taken before.

A reader is a generator with one `yield`, which stands for the call of the original. What comes before the
`yield` runs before the call, what comes after it runs after. A `with` around it holds a lock of the runtime
during the call. Readers run inside the core's guard: whatever they raise is logged once, and the program
sees its own result or its own exception.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias

from otel_kernel import faults, pending, pipeline
from otel_kernel.beside import SideSpan
from otel_kernel.patching import Point, Shape, WrapperFunction
from otel_kernel.records import RecordLevel
from otel_kernel.trip import Begin, OpenTrip, current, wanted


class Call:
    """One call of a wrapped function."""

    __slots__ = ("args", "error", "instance", "kwargs", "positions", "result")

    def __init__(
        self, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any], positions: Mapping[str, int]
    ) -> None:
        self.instance = instance
        self.args = args
        self.kwargs = kwargs
        self.positions = positions
        self.result: Any = None
        """What the call returned; None before it has."""
        self.error: BaseException | None = None
        """What left the call."""

    def argument(self, name: str, default: Any = None) -> Any:
        """Return the argument `name`, however it was passed, or `default` where it was not."""
        if name in self.kwargs:
            return self.kwargs[name]
        position = self.positions.get(name, len(self.args))
        return self.args[position] if position < len(self.args) else default


TripReader: TypeAlias = "Callable[[Call], Generator[Begin | OpenTrip, OpenTrip, None]]"
ProbeReader: TypeAlias = "Callable[[Call, OpenTrip], Generator[None, None, None]]"
ParentReader: TypeAlias = "Callable[[Call], Generator[SideSpan | None, None, None]]"
NoticeReader: TypeAlias = "Callable[[Call], Generator[None, None, None]]"


def trip(read: TripReader) -> Shape:
    """Make every call of the point a trip, unless the reader returns before its `yield`.

    Args:
        read: yields a `Begin` and is sent the trip, which has ended by then and holds `result` or `error`.
            It may yield a trip that another reader has left `held` instead, which then runs on.

    Example:
        >>> def _read_build(call: Call) -> Generator[Begin, OpenTrip, None]:
        ...     if call.instance.built:
        ...         return  # a hit in memory is not a trip
        ...     trip = yield Begin(kernel=call.argument("name"), layer="acme")
        ...     if trip.error is None:
        ...         trip.outcome = CompilationOutcome.LOADED if "hit" in trip.notes else CompilationOutcome.COMPILED
        >>> Point("acme.compiler", "Builder.build", trip(_read_build), ("name",))
    """

    def bind(runtime: str, point: Point, positions: Mapping[str, int]) -> WrapperFunction:
        where = f"the reader of {point}"

        def wrapper(
            wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> Any:
            visit = _begin(runtime, where, read, Call(instance, args, kwargs, positions))
            if visit is None:
                return wrapped(*args, **kwargs)
            try:
                result = wrapped(*args, **kwargs)
            except BaseException as error:
                _end(where, *visit, None, error)
                raise
            _end(where, *visit, result, None)
            return result

        return wrapper

    return bind


_Visit: TypeAlias = "tuple[Generator[Begin | OpenTrip, OpenTrip, None], OpenTrip]"


def _begin(runtime: str, where: str, read: TripReader, call: Call) -> _Visit | None:
    try:
        state = wanted()
        if state is None:
            return None
        around = current()
        if around is not None and runtime in around.absorbs:
            return None
        steps = read(call)
        begin = next(steps, None)
        if begin is None:
            return None
        try:
            pending.settle()
            if isinstance(begin, OpenTrip):
                open_trip = begin
                open_trip.held = False
                open_trip.resume()
            else:
                open_trip = OpenTrip(runtime, begin, state)
                open_trip.begin()
        except BaseException:
            steps.close()
            raise
        return steps, open_trip
    except Exception:
        faults.caught(where)
        return None


def _end(
    where: str,
    steps: Generator[Begin | OpenTrip, OpenTrip, None],
    open_trip: OpenTrip,
    result: object,
    error: BaseException | None,
) -> None:
    try:
        try:
            open_trip.stop(result, error)
        except Exception:
            faults.caught(where)
        try:
            steps.send(open_trip)
        except StopIteration:
            pass
        except Exception:
            faults.caught(where)
    finally:  # of an interrupt: no lock of the runtime stays taken, no span open
        _guard(where, steps.close)
        if not open_trip.held:
            _guard(where, open_trip.finish)


def _guard(where: str, step: Callable[..., object], *arguments: object) -> None:
    try:
        step(*arguments)
    except Exception:
        faults.caught(where)


def probe(read: ProbeReader) -> Shape:
    """Let calls of the point inside an open trip of its runtime add to that trip; others pass untouched.

    Args:
        read: is given the open trip and yields once; then the call holds `result` or `error`.

    Example:
        >>> def _read_lookup(call: Call, trip: OpenTrip) -> Generator[None, None, None]:
        ...     yield
        ...     if call.result is not None:
        ...         trip.notes["hit"] = True
        >>> Point("acme.store", "Store.lookup", probe(_read_lookup))
    """

    def bind(runtime: str, point: Point, positions: Mapping[str, int]) -> WrapperFunction:
        where = f"the reader of {point}"

        def wrapper(
            wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> Any:
            open_trip = current()
            if open_trip is None or open_trip.runtime != runtime:
                return wrapped(*args, **kwargs)
            call = Call(instance, args, kwargs, positions)
            return _read_around(where, read(call, open_trip), call, wrapped)

        return wrapper

    return bind


def notice(read: NoticeReader) -> Shape:
    """Let a reader see every call of the point, inside a trip or not; such a call is no trip.

    For what a runtime does before it compiles, and knows only then.

    Args:
        read: is given the call and yields once; then the call holds `result` or `error`.

    Example:
        >>> def _read_lower(call: Call) -> Generator[None, None, None]:
        ...     yield
        ...     if call.error is None:
        ...         files[call.result] = call.argument("function").__code__.co_filename
        >>> Point("acme.lowering", "lower", notice(_read_lower), ("function",))
    """

    def bind(_runtime: str, point: Point, positions: Mapping[str, int]) -> WrapperFunction:
        where = f"the reader of {point}"

        def wrapper(
            wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> Any:
            if pipeline.current().level is RecordLevel.OFF:
                return wrapped(*args, **kwargs)
            call = Call(instance, args, kwargs, positions)
            return _read_around(where, read(call), call, wrapped)

        return wrapper

    return bind


def parent(read: ParentReader) -> Shape:
    """Run the reader around every call of the point, with the span that it yields as the current one.

    Args:
        read: yields a span, which it ends itself, now or in a later call, or None.

    Example:
        >>> def _read_tuning(call: Call) -> Generator[SideSpan | None, None, None]:
        ...     span = start_parent("acme", "tune", call.instance.name, "acme")
        ...     yield span
        ...     if span is not None:
        ...         span.end(call.error)
        >>> Point("acme.tuner", "Tuner.choose", parent(_read_tuning))
    """

    def bind(_runtime: str, point: Point, positions: Mapping[str, int]) -> WrapperFunction:
        where = f"the reader of {point}"

        def wrapper(
            wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> Any:
            call = Call(instance, args, kwargs, positions)
            steps = read(call)
            span = _enter(where, steps)
            try:
                call.result = wrapped(*args, **kwargs)
            except BaseException as error:
                call.error = error
                _leave(where, steps, span)
                call.error = None  # an exception that we hold would hold its frames
                raise
            _leave(where, steps, span)
            return call.result

        return wrapper

    return bind


def _enter(where: str, steps: Generator[SideSpan | None, None, None]) -> SideSpan | None:
    try:
        span = next(steps, None)
        if span is not None:
            span.enter()
        return span
    except Exception:
        faults.caught(where)
        return None


def _leave(where: str, steps: Generator[SideSpan | None, None, None], span: SideSpan | None) -> None:
    try:
        if span is not None:
            span.leave()
        next(steps, None)
    except Exception:
        faults.caught(where)


def _read_around(
    where: str, steps: Generator[None, None, None], call: Call, wrapped: Callable[..., Any]
) -> Any:
    _step(where, steps)
    try:
        call.result = wrapped(*call.args, **call.kwargs)
    except BaseException as error:
        call.error = error
        _last_step(where, steps)
        call.error = None  # an exception that we hold would hold its frames
        raise
    _last_step(where, steps)
    return call.result


def _step(where: str, steps: Generator[None, None, None]) -> None:
    _guard(where, next, steps, None)


def _last_step(where: str, steps: Generator[None, None, None]) -> None:
    try:
        _guard(where, next, steps, None)
    finally:
        _guard(where, steps.close)
