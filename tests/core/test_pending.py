"""A trip that waits for the load of what its call returned."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Generator
from typing import Any

import pytest
from acme_instrumentor import compile_point, instrumentor
from checks import ends, messages
from opentelemetry.trace import StatusCode
from telemetry import Telemetry

from otel_kernel import pipeline, semconv
from otel_kernel.instrumentor import KernelInstrumentor
from otel_kernel.pending import Load, finish
from otel_kernel.records import Abandoned, CompilationOutcome
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


class Module:
    """What acme compiles to, and loads later."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.handle: int | None = None
        self.refusal: BaseException | None = None
        self.class_while_loading: type | None = None

    def load(self, times: int = 1) -> int:
        """Load, if that is to be done."""
        self.class_while_loading = type(self)
        if self.refusal is not None:
            raise self.refusal
        if self.handle is None:
            self.handle = times
        return self.handle


class OtherModule(Module):
    """A class that a module can be given."""


class Plain:
    """What takes no weak reference."""

    __slots__ = ("handle",)

    def load(self) -> int:
        return 1


def _failed(trip: OpenTrip, error: BaseException) -> None:
    if isinstance(error, LookupError):
        trip.abandon(Abandoned.TUNING)


def _is_loaded(module: Module) -> bool:
    return module.handle is not None


def _device(_module: Module) -> str:
    return "acme:0"


def load_of(**changes: Any) -> Load:
    parts: dict[str, Any] = {
        "method": "load",
        "is_loaded": _is_loaded,
        "device": _device,
        "failed": _failed,
    }
    return Load(**{**parts, **changes})


Start = Callable[..., Any]


@pytest.fixture
def start(acme: Any, telemetry: Telemetry) -> Any:
    """Return what instruments acme with a reader that lets trips wait, and compiles a module."""
    made: list[KernelInstrumentor] = []

    def begin(*, waits: bool = True, load: Load | None = None) -> Start:
        def read_compile(call: Call) -> Generator[Begin, OpenTrip, None]:
            trip = yield Begin(kernel=f"acme.{call.argument('name')}", layer="acme")
            if trip.error is None:
                trip.outcome = CompilationOutcome.COMPILED
                kernel: Any = trip.result
                finish(trip, kernel.value, load or load_of(), waits=waits)

        made.append(instrumentor(compile_point(read_compile)))
        made[0].instrument()
        compiler = acme.Compiler()

        def compile_module(name: str, make: Callable[[], object] | None = None) -> Any:
            # Acme keeps what it has compiled, and a test wants it to die.
            module = compiler.compile(name, make or (lambda: Module(name))).value
            compiler.kernels.clear()
            return module

        return compile_module

    yield begin
    made[0].uninstrument()


def test_load_is_part_of_the_trip(start: Any, telemetry: Telemetry) -> None:
    module = start()("k")

    assert [] == telemetry.spans

    assert 3 == module.load(times=3)
    assert 3 == module.load()

    (trip,) = telemetry.trips
    (span,) = telemetry.spans
    assert Module is module.class_while_loading is type(module)
    assert "compiled" == trip.outcome
    assert (True, "acme:0") == (trip.attributes[semconv.DEVICE_LOADED], trip.attributes[semconv.DEVICE])
    assert span.start_time is not None
    assert trip.duration_ns is not None
    assert span.start_time + trip.duration_ns == span.end_time


def test_trip_that_does_not_wait_ends_at_once(start: Any, telemetry: Telemetry) -> None:
    module = start(waits=False)("k")

    (trip,) = telemetry.trips
    assert trip.attributes[semconv.DEVICE_LOADED] is False

    module.load()

    assert ["compile acme.k", "load acme.k"] == [span.name for span in telemetry.spans]
    assert Module is type(module)
    assert 1 == len(telemetry.trips)


def test_failed_load_fails_the_trip(start: Any, telemetry: Telemetry) -> None:
    module = start()("k")
    module.refusal = refusal = OSError("no room")
    with pytest.raises(OSError, match="no room") as raised:
        module.load()

    assert refusal is raised.value
    assert refusal.__context__ is None
    assert [("acme.k", "OSError")] == ends(telemetry.trips)
    assert [StatusCode.ERROR] == [span.status.status_code for span in telemetry.spans]


def test_load_that_fails_as_the_runtime_expects_abandons_the_trip(start: Any, telemetry: Telemetry) -> None:
    module = start()("k")
    module.refusal = LookupError()
    with pytest.raises(LookupError):
        module.load()

    assert [("acme.k", "tuning")] == ends(telemetry.trips)


def test_load_is_watched_until_it_goes_well(start: Any, telemetry: Telemetry) -> None:
    module = start()("k")
    module.refusal = OSError("no room")
    for _ in range(3):
        with pytest.raises(OSError, match="no room"):
            module.load()
    module.refusal = None
    module.load()
    module.load()

    assert 1 == len(telemetry.trips)
    assert [StatusCode.ERROR, StatusCode.ERROR, StatusCode.UNSET] == [
        span.status.status_code for span in telemetry.spans if span.name == "load acme.k"
    ]


def test_call_that_finds_it_loaded_ends_the_trip_without_load(start: Any, telemetry: Telemetry) -> None:
    module = start()("k")
    module.handle = 9  # by a way that we do not see

    assert 9 == module.load()
    (trip,) = telemetry.trips
    assert trip.attributes[semconv.DEVICE_LOADED] is False
    assert 1 == len(telemetry.spans)
    assert Module is type(module)


def test_next_trip_of_the_thread_ends_it(start: Any, telemetry: Telemetry) -> None:
    compile_module = start()
    first = compile_module("first")
    second = compile_module("second")

    assert [("acme.first", "compiled")] == ends(telemetry.trips)

    first.load()  # too late, and not the load that the second waits for
    second.load()

    assert ["compile acme.first", "load acme.first", "compile acme.second"] == [
        span.name for span in telemetry.spans
    ]


def test_trip_inside_that_waits_ends_with_the_one_around_it(start: Any, telemetry: Telemetry) -> None:
    compile_module = start()
    inside: list[Module] = []

    def body() -> Module:
        inside.append(compile_module("inside"))
        return Module("around")

    around = compile_module("around", body)

    assert [("acme.inside", "compiled")] == ends(telemetry.trips)

    around.load()
    inside[0].load()

    assert ["compile acme.inside", "compile acme.around", "load acme.inside"] == [
        span.name for span in telemetry.spans
    ]


def test_object_that_two_trips_return_is_told_of_twice(start: Any, telemetry: Telemetry) -> None:
    compile_module = start()
    module = compile_module("around", lambda: compile_module("inside"))
    module.load()

    inside, around = telemetry.trips
    assert (False, True) == (
        inside.attributes[semconv.DEVICE_LOADED],
        around.attributes[semconv.DEVICE_LOADED],
    )
    assert 2 == len(telemetry.spans)
    assert Module is type(module)


def test_load_on_another_thread_is_a_span_of_its_own(start: Any, telemetry: Telemetry) -> None:
    module = start()("k")
    thread = threading.Thread(target=module.load)
    thread.start()
    thread.join()

    (trip,) = telemetry.trips
    assert trip.attributes[semconv.DEVICE_LOADED] is False
    assert ["compile acme.k", "load acme.k"] == [span.name for span in telemetry.spans]


def test_death_of_the_object_ends_it(start: Any, telemetry: Telemetry) -> None:
    module = start()("k")
    reference = weakref.ref(module)
    del module
    gc.collect()

    assert reference() is None
    assert [("acme.k", "compiled")] == ends(telemetry.trips)


def test_removing_the_instrumentor_ends_it_and_gives_the_class_back(acme: Any, telemetry: Telemetry) -> None:
    def read_compile(call: Call) -> Generator[Begin, OpenTrip, None]:
        trip = yield Begin(kernel="acme.k", layer="acme")
        trip.outcome = CompilationOutcome.COMPILED
        kernel: Any = trip.result
        finish(trip, kernel.value, load_of(), waits=call.argument("name") == "waits")

    made = instrumentor(compile_point(read_compile))
    made.instrument()
    compiler = acme.Compiler()
    modules = [compiler.compile(name, lambda: Module("k")).value for name in ("never", "waits")]
    made.uninstrument()

    assert [Module, Module] == [type(module) for module in modules]
    assert 2 == len(telemetry.trips)

    modules[0].load()

    assert 2 == len(telemetry.spans)


def test_object_that_waits_is_copied_and_pickled_as_it_is(start: Any) -> None:
    module = start()("k")
    class_of_module = module.__class__

    assert class_of_module is not Module
    assert isinstance(module, Module)
    assert (Module.__module__, Module.__qualname__) == (
        class_of_module.__module__,
        class_of_module.__qualname__,
    )
    for each in (copy.copy(module), copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert Module is type(each)
        assert vars(module) == vars(each)


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="about how CPython keeps attributes")
def test_attributes_are_where_cpython_reads_them_quickly(start: Any) -> None:
    moved = Module("moved")
    moved.__class__ = OtherModule
    shared: dict[str, Any] = moved.__dict__
    module = start()("k")
    module.load()
    own: dict[str, Any] = module.__dict__

    # A dictionary that shares its keys with the class is smaller, and slower.
    assert sys.getsizeof(shared) < sys.getsizeof(dict(shared))
    assert sys.getsizeof(dict(own)) == sys.getsizeof(own)
    assert list(shared) == list(own)


@pytest.mark.parametrize(("make", "method"), [(set, "copy"), (Plain, "load"), (bool, "conjugate")])
def test_object_that_cannot_wait_is_left_alone(
    start: Any, telemetry: Telemetry, make: type, method: str
) -> None:
    value = start(load=load_of(method=method))("k", lambda: make())

    assert make is value.__class__
    assert [("acme.k", "compiled")] == ends(telemetry.trips)


def test_late_load_at_level_off_says_nothing(start: Any, telemetry: Telemetry) -> None:
    module = start(waits=False)("k")
    pipeline.configure(level="off")
    module.load()

    assert ["compile acme.k"] == [span.name for span in telemetry.spans]
    assert Module is type(module)


@pytest.mark.faults_logged
@pytest.mark.parametrize("part", ["is_loaded", "device", "failed"])
def test_fault_in_what_a_load_reads_costs_no_trip(
    start: Any, telemetry: Telemetry, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    def raise_fault(*_: object) -> Any:
        raise ArithmeticError

    module = start(load=load_of(**{part: raise_fault}))("k")
    if part == "failed":
        module.refusal = OSError("no room")
        with pytest.raises(OSError, match="no room"):
            module.load()
    else:
        assert 1 == module.load()

    assert [("acme.k", "OSError" if part == "failed" else "compiled")] == ends(telemetry.trips)
    assert 1 == len(messages(caplog))


def test_nothing_of_the_object_is_kept(start: Any, telemetry: Telemetry) -> None:
    compile_module = start()
    references: list[weakref.ref[Any]] = []

    def use(n: int) -> None:
        module = compile_module(f"k{n}")
        references.append(weakref.ref(module))
        if n % 2:
            module.load()

    for n in range(100):
        use(n)
    gc.collect()

    assert 100 == len(telemetry.trips)
    assert [] == [reference for reference in references if reference() is not None]
