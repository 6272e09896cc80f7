"""The shape `finish`: a trip that goes on until its kernel is loaded on the device.

A compile function returns an object that the launch loads only afterwards. The trip then waits on that
object: its context is left and its clock stands still, so that code in between belongs to no trip. It ends
at the first of: the load ends or fails, another trip begins on the thread, the object dies, the instrumentor
is removed, the process exits. Without a load it ends where the compile ended. A load that finds its trip
over, and one that is tried again, is a span of its own, linked to the trip.

The object waits as an instance of a class of ours, a copy of its own one with another `load` method, which
puts the first class back before it loads. So neither the class nor a later launch holds anything of ours,
nor does the object's dictionary, which a runtime may pickle. What is left is that CPython keeps the attributes
in a dictionary: see `_keep_attributes_near`.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

from opentelemetry.trace import SpanContext

from otel_kernel import faults, semconv
from otel_kernel.beside import SideSpan, start_load
from otel_kernel.trip import OpenTrip


@dataclass(frozen=True, slots=True)
class Load:
    """How the objects of one kind are loaded on their device."""

    method: str
    """The method that loads. It may be called again, when there is nothing to do any more."""
    is_loaded: Callable[[Any], bool]
    """Whether there is nothing to do for the object."""
    device: Callable[[Any], str | None]
    """Tells the device once the object is loaded."""
    failed: Callable[[OpenTrip, BaseException], None]
    """Reads what left the load of a trip: a detail, or that it is the runtime's control flow."""


class _Watch:
    """What is known of an object that is not loaded yet; it keeps no object alive."""

    __slots__ = ("kernel", "layer", "links", "load", "object", "runtime", "seq", "session", "waiting")

    def __init__(self, trip: OpenTrip, load: Load, watched: object) -> None:
        self.runtime, self.kernel, self.layer = trip.runtime, trip.kernel, trip.layer
        self.session, self.seq = trip.session, trip.seq
        self.links: tuple[SpanContext, ...] = tuple(span.get_span_context() for span in trip.spans)
        self.load = load
        self.object = weakref.ref(watched, partial(_died, id(watched)))
        self.waiting: list[OpenTrip] = []
        """The trip, while it waits; a list, since `pop` gives it to one thread only."""

    def take(self) -> OpenTrip | None:
        try:
            return self.waiting.pop()
        except IndexError:
            return None


class _Here(threading.local):
    watch: _Watch | None = None
    """The object of this thread whose trip waits."""


_watched: dict[int, _Watch] = {}
"""By the id of the object, from its trip until it is loaded or dies."""

_here = _Here()

_deferred: deque[OpenTrip] = deque()
"""Trips whose object died where nothing can be told."""


def finish(trip: OpenTrip, watched: object, load: Load, *, waits: bool) -> None:
    """Let a trip see the load of what its call returned; the last word of its reader.

    Args:
        trip: has an outcome, and everything but the load is read.
        watched: what the call returned, not loaded yet.
        load: how it is loaded.
        waits: whether the code that called goes on to load it, so that the trip waits for that. Otherwise
            the trip ends now, and a load is a span of its own.

    Example:
        >>> LOAD = Load("load", lambda module: module.handle is not None, lambda module: module.device, _failed)
        >>> def _read_build(call: Call) -> Generator[Begin, OpenTrip, None]:
        ...     trip = yield Begin(kernel=call.argument("name"), layer="acme")
        ...     if trip.error is None:
        ...         trip.outcome = CompilationOutcome.COMPILED
        ...         finish(trip, trip.result, LOAD, waits=True)
    """
    try:
        watch = _Watch(trip, load, watched)
        is_new = type(watched) not in _kinds
        _begin_to_watch(watched, watch)
        if is_new:
            _keep_attributes_near(watched)
    except TypeError:
        return  # written in C: it takes no weak reference or no other class, and its load is not seen
    if not waits:
        return
    settle()  # one inside of this trip may wait on this thread
    trip.held = True
    trip.result = None  # a trip that held its object would keep it from dying
    trip.notes.clear()
    watch.waiting.append(trip)
    _here.watch = watch
    # Anew each time, so that it runs before what a provider or a recording has registered meanwhile.
    atexit.unregister(_exit)
    atexit.register(_exit)


def settle() -> None:
    """End the trip that waits on this thread, if one does, since another one begins."""
    watch, _here.watch = _here.watch, None
    if watch is not None:
        _finish(watch.take())
    _finish_deferred()


def release(runtime: str) -> None:
    """End the trips of a runtime that wait, and give their objects their own class back."""
    for key, watch in list(_watched.items()):
        if watch.runtime == runtime and _watched.pop(key, None) is not None:
            watched = watch.object()
            if watched is not None:
                _restore_class(watched)
            _finish(watch.take())


def _exit() -> None:
    for watch in list(_watched.values()):
        _finish(watch.take())
    _finish_deferred()


def _forget() -> None:
    """Leave what waits to the parent process; a load in this one still belongs to those trips."""
    _here.watch = None
    _deferred.clear()
    for watch in _watched.values():
        watch.waiting.clear()


os.register_at_fork(after_in_child=_forget)


def _finish(trip: OpenTrip | None) -> None:
    if trip is None:
        return
    try:
        trip.finish()
    except Exception:
        faults.caught("ending a trip")


def _finish_deferred() -> None:
    while _deferred:
        try:
            trip = _deferred.popleft()
        except IndexError:
            return  # another thread has had it
        _finish(trip)


def _died(key: int, _reference: object) -> None:
    watch = _watched.pop(key, None)
    trip = watch.take() if watch is not None else None
    if trip is None:
        return
    if _in_telemetry():
        _deferred.append(trip)
    else:
        _finish(trip)


def _in_telemetry() -> bool:
    """Whether code that may hold a lock of an exporter's is below: the collector runs anywhere."""
    frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - the documented way to walk the stack
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in ("opentelemetry", "otel_kernel"):
            return True
        frame = frame.f_back
    return False


_kinds: dict[type, type] = {}
"""Class of an object by the class it waits with."""


def _waiting_class(kind: type, method: str) -> type:
    """Return a class that is `kind` in all but the first call of `method`."""
    for waiting, known in _kinds.items():
        if known is kind and method in vars(waiting):
            return waiting

    stock: Any = kind

    @functools.wraps(getattr(stock, method))
    def load(self: Any, *args: Any, **kwargs: Any) -> Any:
        watch = _watched.pop(id(self), None)
        _restore_class(self)
        original = getattr(stock, method)
        visit = _load_begins(watch, self) if watch is not None else None
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            if watch is not None:
                _load_ends(watch, self, visit, error)
            raise
        if watch is not None:
            _load_ends(watch, self, visit, None)
        return result

    def reduce(self: Any, _protocol: Any) -> Any:
        """Pickle and copy as `kind`: a copy is none of ours."""
        # Above protocol 1 a pickler insists on the class that the object has.
        function, arguments, *rest = stock.__reduce_ex__(self, 1)
        return (function, tuple(kind if part is waiting else part for part in arguments), *rest)

    waiting = type(kind)(
        kind.__name__,
        (kind,),
        {
            "__doc__": kind.__doc__,
            "__module__": kind.__module__,
            "__qualname__": kind.__qualname__,
            "__reduce_ex__": reduce,
            "__slots__": (),
            method: load,
        },
    )
    _kinds[waiting] = kind
    return waiting


def _begin_to_watch(watched: object, watch: _Watch) -> None:
    kind = type(watched)
    if kind not in _kinds:
        object.__setattr__(watched, "__class__", _waiting_class(kind, watch.load.method))
    before = _watched.get(id(watched))
    _watched[id(watched)] = watch
    if before is not None:
        _finish(before.take())  # a trip inside of this one has returned the same object


def _keep_attributes_near(watched: Any) -> None:
    """Let the attributes of an object be read quickly once it has its own class back.

    CPython keeps them in the object itself. Assigning a class moves them, for good, into a dictionary that
    shares its keys with the class, and there the interpreter's inline caches are of no use, which was seen to
    cost several percent of a launch. They are for a dictionary that has keys of its own.

    Args:
        watched: what a call has just made, so that no other thread has it yet.
    """
    attributes: Any = getattr(watched, "__dict__", None)
    if attributes.__class__ is dict:
        object.__setattr__(watched, "__dict__", dict(attributes))


def _restore_class(watched: object) -> None:
    kind = _kinds.get(type(watched))
    if kind is not None:
        object.__setattr__(watched, "__class__", kind)


def _load_begins(watch: _Watch, watched: object) -> OpenTrip | SideSpan | None:
    """Let the trip run on, or begin a span for a load that came too late for it."""
    trip = watch.take()
    is_next = _here.watch is watch
    if is_next:
        _here.watch = None
    try:
        if watch.load.is_loaded(watched):
            _finish(trip)
            return None
        if trip is not None and is_next:
            trip.resume()
            return trip
        _finish(trip)
        span = start_load(watch.runtime, watch.kernel, watch.layer, watch.session, watch.seq, watch.links)
        if span is not None:
            span.enter()
        return span
    except Exception:
        faults.caught(f"the load of {watch.runtime}")
        _finish(trip)
        return None


def _load_ends(
    watch: _Watch, watched: object, visit: OpenTrip | SideSpan | None, error: BaseException | None
) -> None:
    load = watch.load
    try:
        if isinstance(visit, OpenTrip):
            _load_of_trip_ends(load, watched, visit, error)
        elif visit is not None:
            visit.leave()
            device = load.device(watched) if error is None else None
            visit.end(error, {semconv.DEVICE: device} if device is not None else None)
        if error is not None and not load.is_loaded(watched):
            _begin_to_watch(watched, watch)  # the program may try again
    except Exception:
        faults.caught(f"the load of {watch.runtime}")


def _load_of_trip_ends(load: Load, watched: object, trip: OpenTrip, error: BaseException | None) -> None:
    ran = trip.stop(None, error)
    try:
        if error is None:
            trip.set(semconv.DEVICE_LOADED, True)
            trip.set(semconv.DEVICE, load.device(watched))
        else:
            load.failed(trip, error)
        trip.add_stage("load", ran)
    finally:
        _finish(trip)
