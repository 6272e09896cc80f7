"""Our own faults, and interrupts: the program sees its own result and its own exception, and every lock is free."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest
from acme_instrumentor import compile_point, find_point, instrumentor
from checks import ends, failing, is_free, messages
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from telemetry import Telemetry

from otel_kernel import faults, pipeline, semconv, spans
from otel_kernel.records import CompilationOutcome, Trip
from otel_kernel.shapes import Call, TripReader
from otel_kernel.trip import Begin, OpenTrip

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

COMPILED = CompilationOutcome.COMPILED


def _raise(*_args: Any, **_kwargs: Any) -> Any:
    raise LookupError("ours")


def _giving(value: Any) -> Callable[..., Any]:
    """Return a function that returns `value`, whatever it is called with."""

    def give(*_args: Any, **_kwargs: Any) -> Any:
        return value

    return give


class _Unprintable:
    def __str__(self) -> str:
        raise LookupError("ours")

    __repr__ = __str__


def _read_raising_first(_call: Call) -> Generator[Begin, OpenTrip, None]:
    _raise()
    yield Begin("never", "acme")


def _read_raising_after(call: Call) -> Generator[Begin, OpenTrip, None]:
    with call.instance.lock:
        yield Begin("acme.k", "acme")
        _raise()


def _read_raising_with_an_outcome(call: Call) -> Generator[Begin, OpenTrip, None]:
    with call.instance.lock:
        done = yield Begin("acme.k", "acme")
        if done.error is None:
            done.outcome = COMPILED
        _raise()


def _read_ending_twice(call: Call) -> Generator[Begin, OpenTrip, None]:
    with call.instance.lock:
        done = yield Begin("acme.k", "acme")
        if done.error is None:
            done.outcome = COMPILED
        yield Begin("again", "acme")


def _read_refusing_to_end(_call: Call) -> Generator[Begin, OpenTrip, None]:
    done = yield Begin("acme.k", "acme")
    if done.error is None:
        done.outcome = COMPILED
    with contextlib.suppress(GeneratorExit):
        yield Begin("again", "acme")
    yield Begin("and again", "acme")


def _read_empty_kernel(call: Call) -> Generator[Begin, OpenTrip, None]:
    with call.instance.lock:
        yield Begin("", "acme")


def _read_unprintable_kernel(call: Call) -> Generator[Begin, OpenTrip, None]:
    with call.instance.lock:
        yield Begin(f"acme.{_Unprintable()}", "acme")


def _read_kernel_of_another_type(call: Call) -> Generator[Begin, OpenTrip, None]:
    with call.instance.lock:
        yield Begin(_Unprintable(), "acme")  # type: ignore[arg-type] # the fault


def _read_bad_start(call: Call) -> Generator[Begin, OpenTrip, None]:
    with call.instance.lock:
        yield Begin("acme.k", "acme", {semconv.RANK: "three"})


def _set(name: str, value: Any) -> Callable[[Call], Generator[Begin, OpenTrip, None]]:
    def read(call: Call) -> Generator[Begin, OpenTrip, None]:
        with call.instance.lock:
            done = yield Begin("acme.k", "acme")
            if done.error is None:
                done.outcome = COMPILED
            done.set(name, value)

    return read


def _put(name: str, value: Any) -> Callable[[Call], Generator[Begin, OpenTrip, None]]:
    def read(call: Call) -> Generator[Begin, OpenTrip, None]:
        with call.instance.lock:
            done = yield Begin("acme.k", "acme")
            if done.error is None:
                done.outcome = COMPILED
            setattr(done, name, value)

    return read


def _read_odd_stage(call: Call) -> Generator[Begin, OpenTrip, None]:
    with call.instance.lock:
        done = yield Begin("acme.k", "acme")
        if done.error is None:
            done.outcome = COMPILED
        done.add_stage("lower", 1.5)  # type: ignore[arg-type] # the fault


READERS: dict[str, tuple[TripReader, list[str] | None]] = {
    "before the call": (_read_raising_first, []),
    "after the call": (_read_raising_after, ["unread"]),
    "after the outcome": (_read_raising_with_an_outcome, ["compiled"]),
    "yields twice": (_read_ending_twice, ["compiled"]),
    "does not end": (_read_refusing_to_end, ["compiled"]),
    "empty kernel": (_read_empty_kernel, []),
    "kernel whose str raises": (_read_unprintable_kernel, []),
    "kernel that is no str": (_read_kernel_of_another_type, []),
    "attribute of another type at start": (_read_bad_start, []),
    "attribute of another type": (_set(semconv.DEVICE, 1), ["compiled"]),
    "attribute whose repr raises": (_set(semconv.DEVICE, _Unprintable()), ["compiled"]),
    "attribute beyond 64 bits": (_set(semconv.ARTIFACT_SIZE, 2**63), ["compiled"]),
    "attribute without a definition": (_set("compute.kernel.unknown", "x"), ["compiled"]),
    "stage that is no int": (_read_odd_stage, ["compiled"]),
    "outcome of another type": (_put("outcome", "compiled"), None),
    "key of another type": (_put("key", "compiled"), None),
    "text of another type": (_put("source", b"bytes"), None),
}
"""By name: a faulty reader, and how a call that ends well is told; None where its span ends bare."""

SILENT = ("yields twice",)


@pytest.mark.faults_logged
@pytest.mark.parametrize("fault", READERS)
def test_fault_of_a_reader_costs_the_program_nothing(
    acme: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    read, told = READERS[fault]
    instrumentor(compile_point(read)).instrument()
    made = acme.Compiler()
    bodies: list[int] = []

    assert "k" == made.compile("k", lambda: bodies.append(1)).name
    assert (1, [1]) == (made.calls, bodies)
    assert is_free(made.lock)
    assert (told or []) == [end for _, end in ends(telemetry.trips)]
    assert len(telemetry.spans) == (1 if told is None else len(told))

    error = ArithmeticError("theirs")
    with pytest.raises(ArithmeticError) as raised:
        made.compile("broken", failing(error))

    assert raised.value is error
    assert error.__context__ is None
    assert 2 == made.calls
    assert is_free(made.lock)

    made.compile("once more")
    logged = messages(caplog)

    assert (0 if fault in SILENT else 1) == len(logged), logged
    assert all("the reader of acme.compiler.Compiler.compile failed in otel-kernel" in m for m in logged)
    assert "secret" not in caplog.text


def _read_telling_the_text(call: Call) -> Generator[Begin, OpenTrip, None]:
    done = yield Begin("acme.k", "acme")
    if done.error is None:
        done.outcome = COMPILED
    try:
        raise LookupError(call.kwargs["source"])
    except LookupError:
        done.set(semconv.RANK, call.kwargs["source"])


@pytest.mark.faults_logged
def test_fault_of_a_reader_tells_its_frames_and_no_text_of_a_kernel(
    acme: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    instrumentor(compile_point(_read_telling_the_text)).instrument()
    acme.Compiler().compile("k", source="secret")

    assert [("acme.k", "compiled")] == ends(telemetry.trips)
    assert 2 == len(caplog.records)
    assert "_read_telling_the_text (" in caplog.records[1].getMessage()
    assert "secret" not in caplog.text


@pytest.mark.faults_logged
def test_what_the_user_can_put_right_is_said_once_in_its_own_words(
    compiler: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_trip: Trip) -> None:
        raise faults.UserError("the file is a folder: name a file")

    broken: Any = _Delegating(None, wants_start=True, started=refuse, finished=refuse)
    pipeline.add_sink(broken)
    compiler.compile("a")
    compiler.compile("b")

    assert ["the file is a folder: name a file"] == [record.getMessage() for record in caplog.records]
    assert 2 == len(telemetry.trips)


def _probe_raising_first(_call: Call, _trip: OpenTrip) -> Generator[None, None, None]:
    _raise()
    yield


def _probe_raising_after(_call: Call, _trip: OpenTrip) -> Generator[None, None, None]:
    yield
    _raise()


def _probe_refusing_to_end(_call: Call, _trip: OpenTrip) -> Generator[None, None, None]:
    yield
    with contextlib.suppress(GeneratorExit):
        yield
    yield


@pytest.mark.faults_logged
@pytest.mark.parametrize("read", [_probe_raising_first, _probe_raising_after, _probe_refusing_to_end])
def test_fault_of_a_probe_costs_a_field_and_no_trip(
    acme: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture, read: Any
) -> None:
    instrumentor(compile_point(), find_point(read)).instrument()
    acme.compiler.store.kept["k"] = kept = object()
    made = acme.Compiler()

    assert made.compile("k") is kept

    made.compile("other")

    assert ["compiled", "compiled"] == [end for _, end in ends(telemetry.trips)]
    assert 1 == len(messages(caplog))


def test_probe_sees_what_leaves_its_call_and_the_program_gets_it_unchanged(
    acme: Any, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = ArithmeticError("theirs")

    def find(name: str) -> None:
        assert "k" == name
        raise error

    monkeypatch.setattr(acme.compiler.store, "find", find)
    seen: list[tuple[Call, object, BaseException | None]] = []

    def read(call: Call, _trip: OpenTrip) -> Generator[None, None, None]:
        yield
        seen.append((call, call.result, call.error))

    instrumentor(compile_point(), find_point(read)).instrument()
    with pytest.raises(ArithmeticError) as raised:
        acme.Compiler().compile("k")
    ((call, result, seen_error),) = seen

    assert raised.value is seen_error is error
    assert result is None
    assert call.error is None
    assert error.__context__ is None
    assert [("acme.k", "ArithmeticError")] == ends(telemetry.trips)


class _Delegating:
    """Passes everything on, but what a test replaces."""

    def __init__(self, target: Any, **replaced: Any) -> None:
        self._target = target
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


def _processor(**replaced: Any) -> Callable[[Telemetry], Any]:
    def provider(telemetry: Telemetry) -> Any:
        made = TracerProvider(shutdown_on_exit=False)
        processor: Any = _Delegating(SimpleSpanProcessor(telemetry.exporter), **replaced)
        made.add_span_processor(processor)
        return made

    return provider


def _span(**replaced: Any) -> Callable[[Telemetry], Any]:
    def provider(telemetry: Telemetry) -> Any:
        def get_tracer(*args: Any, **kwargs: Any) -> Any:
            tracer = telemetry.tracer_provider.get_tracer(*args, **kwargs)

            def start_span(*args: Any, **kwargs: Any) -> Any:
                return _Delegating(tracer.start_span(*args, **kwargs), **replaced)

            return _Delegating(tracer, start_span=start_span)

        return _Delegating(telemetry.tracer_provider, get_tracer=get_tracer)

    return provider


def _tracer(telemetry: Telemetry) -> Any:
    return _Delegating(telemetry.tracer_provider, get_tracer=_giving(_Delegating(None, start_span=_raise)))


def _no_tracer(telemetry: Telemetry) -> Any:
    return _Delegating(telemetry.tracer_provider, get_tracer=_raise)


def _sampler(_telemetry: Telemetry) -> Any:
    sampler: Any = _Delegating(ALWAYS_OFF, should_sample=_raise)
    return TracerProvider(sampler=sampler, shutdown_on_exit=False)


PROVIDERS: dict[str, tuple[Callable[[Telemetry], Any], int]] = {
    "processor at start": (_processor(on_start=_raise), 0),
    "processor at end": (_processor(on_end=_raise), 0),
    "provider": (_no_tracer, 0),
    "tracer": (_tracer, 0),
    "sampler": (_sampler, 0),
    "span context": (_span(get_span_context=_raise), 1),
    "span attributes": (_span(set_attributes=_raise), 1),
    "span recording": (_span(is_recording=_raise), 1),
    "span end": (_span(end=_raise), 0),
}
"""By name: a provider with a fault, and the number of spans that come through all the same."""


@pytest.mark.faults_logged
@pytest.mark.parametrize("fault", PROVIDERS)
def test_fault_of_a_tracer_costs_the_span_and_neither_the_program_nor_the_trip(
    acme: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    provider, came_through = PROVIDERS[fault]
    instrumentor().instrument(tracer_provider=provider(telemetry))
    made = acme.Compiler()

    assert "k" == made.compile("k").name
    assert 1 == made.calls
    assert [("acme.k", "compiled")] == ends(telemetry.trips)
    assert came_through == len(telemetry.spans)

    error = ArithmeticError("theirs")
    with pytest.raises(ArithmeticError) as raised:
        made.compile("broken", failing(error))

    assert raised.value is error
    assert error.__context__ is None
    assert 2 == made.calls
    assert is_free(made.lock)
    assert 1 == len(messages(caplog)), messages(caplog)


@pytest.mark.faults_logged
def test_fault_of_a_span_costs_no_measurement(acme: Any, telemetry: Telemetry) -> None:
    instrumentor().instrument(tracer_provider=_span(set_attributes=_raise)(telemetry))
    acme.Compiler().compile("k")
    measured = telemetry.reader.get_metrics_data()

    assert measured is not None
    assert semconv.DURATION_METRIC in measured.to_json()


@pytest.mark.faults_logged
def test_fault_of_a_tracer_leaves_the_programs_span_current(acme: Any, telemetry: Telemetry) -> None:
    instrumentor().instrument(tracer_provider=_tracer(telemetry))
    with telemetry.tracer_provider.get_tracer("program").start_as_current_span("around") as around:
        inside: list[Any] = []
        acme.Compiler().compile("k", lambda: inside.append(trace.get_current_span()))

    assert [around] == inside


@pytest.mark.faults_logged
def test_fault_of_an_exporter_costs_the_program_nothing(
    acme: Any, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry.exporter, "export", _raise)
    instrumentor().instrument()

    assert "k" == acme.Compiler().compile("k").name
    assert [("acme.k", "compiled")] == ends(telemetry.trips)


@pytest.mark.faults_logged
def test_fault_of_a_meter_costs_the_measurement_alone(
    acme: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    class Histogram:
        record = staticmethod(_raise)

    def get_meter(*args: Any, **kwargs: Any) -> Any:
        meter = telemetry.meter_provider.get_meter(*args, **kwargs)
        return _Delegating(meter, create_histogram=_giving(Histogram()))

    instrumentor().instrument(meter_provider=_Delegating(telemetry.meter_provider, get_meter=get_meter))
    acme.Compiler().compile("k")
    acme.Compiler().compile("k")

    assert 2 == len(telemetry.trips) == len(telemetry.spans)
    assert [True, True] == [semconv.OUTCOME in (span.attributes or {}) for span in telemetry.spans]
    assert 1 == len(messages(caplog))


@pytest.mark.faults_logged
@pytest.mark.parametrize("method", ["started", "finished"])
def test_fault_of_a_sink_reaches_neither_the_program_nor_other_sinks(
    compiler: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    telemetry.sink.wants_start = True
    broken: Any = _Delegating(None, wants_start=True, started=_giving(None), finished=_giving(None))
    setattr(broken, method, _raise)
    pipeline.remove_sink(telemetry.sink)
    pipeline.add_sink(broken)
    pipeline.add_sink(telemetry.sink)
    compiler.compile("a")
    compiler.compile("b")

    assert [("acme.a", "compiled"), ("acme.b", "compiled")] == ends(telemetry.trips)
    assert ["acme.a", "acme.b"] == [each.kernel for each in telemetry.sink.starts]
    assert 1 == len(messages(caplog))
    assert f"_Delegating.{method} failed in otel-kernel" in caplog.text


@pytest.mark.faults_logged
def test_programs_logging_that_raises_does_not_reach_the_program(acme: Any, telemetry: Telemetry) -> None:
    class Filter(logging.Filter):
        filter = staticmethod(_raise)

    logger = logging.getLogger("otel_kernel")
    broken = Filter()
    logger.addFilter(broken)
    try:
        instrumentor(compile_point(_read_raising_after)).instrument()
        made = acme.Compiler()

        assert "k" == made.compile("k").name
        assert 1 == made.calls
    finally:
        logger.removeFilter(broken)

    assert 1 == len(telemetry.trips)


def test_under_our_own_tests_a_fault_raises(acme: Any, telemetry: Telemetry) -> None:
    instrumentor(compile_point(_read_raising_after)).instrument()
    with pytest.raises(LookupError, match="ours"):
        acme.Compiler().compile("k")

    assert telemetry is not None


# Locks of the runtime.


def test_lock_of_a_reader_is_held_during_the_call(compiler: Any) -> None:
    free: list[bool] = []
    compiler.compile("k", lambda: free.append(is_free(compiler.lock)))

    assert [False] == free
    assert is_free(compiler.lock)


@pytest.mark.parametrize("error", [ArithmeticError(), KeyboardInterrupt(), SystemExit(), GeneratorExit()])
def test_lock_of_a_reader_is_released_whatever_leaves_the_call(compiler: Any, error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        compiler.compile("k", failing(error))

    assert raised.value is error
    assert is_free(compiler.lock)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_interrupt_inside_a_reader_passes_and_leaves_nothing(
    acme: Any, telemetry: Telemetry, moment: str
) -> None:
    def read(call: Call) -> Generator[Begin, OpenTrip, None]:
        with call.instance.lock:
            if moment == "before":
                raise KeyboardInterrupt
            yield Begin("acme.k", "acme")
            raise KeyboardInterrupt

    instrumentor(compile_point(read)).instrument()
    made = acme.Compiler()
    with pytest.raises(KeyboardInterrupt) as raised:
        made.compile("k")

    assert is_free(made.lock)  # although the frames are still alive
    assert raised.value.__traceback__ is not None
    assert (0 if moment == "before" else 1) == len(telemetry.spans)


@pytest.mark.parametrize("method", ["started", "finished"])
def test_interrupt_inside_a_sink_passes_and_leaves_nothing(
    compiler: Any, telemetry: Telemetry, method: str
) -> None:
    def interrupt(_trip: Trip) -> None:
        raise KeyboardInterrupt

    sink: Any = _Delegating(None, wants_start=True, started=_giving(None), finished=_giving(None))
    setattr(sink, method, interrupt)
    pipeline.add_sink(sink)
    with pytest.raises(KeyboardInterrupt) as raised:
        compiler.compile("k")

    assert is_free(compiler.lock)  # although the frames are still alive
    assert raised.value.__traceback__ is not None
    assert 1 == len(telemetry.spans)


def test_lock_of_a_probe_is_held_during_the_call_and_released_after_it(
    acme: Any, telemetry: Telemetry
) -> None:
    lock = threading.RLock()
    free: list[bool] = []

    def read(_call: Call, _trip: OpenTrip) -> Generator[None, None, None]:
        with lock:
            yield
            free.append(is_free(lock))
            yield

    instrumentor(compile_point(), find_point(read)).instrument()
    acme.Compiler().compile("k")

    assert [False] == free
    assert is_free(lock)
    assert 1 == len(telemetry.trips)


@pytest.mark.faults_logged
def test_trip_that_cannot_begin_leaves_the_trip_around_it_in_flight(
    compiler: Any, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans, "_tickets", itertools.count())

    def interrupt(trip: Trip) -> None:
        if trip.parent_seq is not None:
            raise KeyboardInterrupt

    sink: Any = _Delegating(None, wants_start=True, started=interrupt, finished=_giving(None))
    pipeline.add_sink(sink)
    active: list[float] = []

    def body() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            compiler.compile("inner")
        active.append(spans.oldest_active())

    compiler.compile("outer", body)

    assert active[0] > 0
    assert [("acme.outer", "compiled")] == ends(telemetry.trips)
