"""A model server with tracing of its own: an HTTP front, an engine in another process, workers by fork and spawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from otlp.receiver import Receiver
from zero_code.launching import CHILDREN

from otel_kernel import semconv
from otel_kernel.records import CompilationOutcome, Trip
from server.serving import STARTS, Served, Way, by_rank, end, report, start

THREADS = ("task", "to_thread", "executor", "contextvars", "thread")
FRONT = tuple(f"front_{how}" for how in THREADS)

CARRIED = (
    # kernel as it was asked for, as it is called, layer, rank
    ("forked", "forked", "numba", 0),
    ("forked_scale", "scale", "triton", 0),
    ("spawned", "spawned", "numba", 1),
    ("spawned_scale", "scale", "triton", 1),
    ("graph", "graph", "torch.inductor.graph", 1),
    ("graph", "cpp_fused_add_sin_0", "torch.inductor.cpp_kernel", 1),
    ("module", "module", "jax", 1),
)
"""Kernels of workers that were asked for with the trace context."""

ALONE = (("forked_alone", 0), ("spawned_alone", 1))
"""Those that were asked for without, with their ranks."""

LEAVING = ("return", "os._exit", "SIGTERM", "SIGKILL")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(way, marks=CHILDREN) if way == "opentelemetry-instrument" else way for way in STARTS
    ],
)
def way(request: pytest.FixtureRequest) -> Way:
    """Each way to start the server."""
    chosen: Way = request.param
    return chosen


@pytest.fixture(scope="module")
def served(way: Way, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that was asked for every kernel, and has gone."""
    folder = tmp_path_factory.mktemp("server")
    with Receiver() as receiver, start(way, folder, receiver) as server:
        for how in THREADS:
            server.here(how, f"front_{how}")
        server.unsampled("unsampled")
        server.worker("fork-0", "numba", "forked")
        server.worker("fork-0", "numba", "forked_alone", context=False)
        server.worker("fork-0", "triton", "forked_scale")
        server.worker("spawn-1", "numba", "spawned")
        server.worker("spawn-1", "numba", "spawned_alone", context=False)
        server.worker("spawn-1", "triton", "spawned_scale")
        server.worker("spawn-1", "torch", "graph")
        server.worker("spawn-1", "jax", "module")
        server.leave("fork-0", "return")
        server.leave("spawn-1", "return")
        yield end(server, folder, receiver)


def parent(span: Span) -> tuple[str, str]:
    return span.trace_id.hex(), span.parent_span_id.hex()


def of_rank(served: Served, kernel: str, layer: str, rank: int) -> Trip:
    (found,) = [trip for trip in served.trips_of(kernel, layer) if trip.attributes.get(semconv.RANK) == rank]
    return found


def test_every_trip_is_recorded_and_arrives_exactly_once(served: Served, way: Way) -> None:
    recorded = Counter((trip.session.id, trip.seq) for trip in served.trips)
    arrived = Counter(served.arrived_ids())
    unsampled = served.trip("unsampled")

    assert {1} == set(recorded.values())
    assert {1} == set(arrived.values())
    assert (recorded - arrived).keys() == (
        set() if way == "opentelemetry-instrument" else {(unsampled.session.id, unsampled.seq)}
    )
    assert set() == arrived.keys() - recorded.keys()


def test_all_kernels_are_there_and_no_others(served: Served) -> None:
    names = [(kernel, layer) for _, kernel, layer, _ in CARRIED]
    names += [(kernel, "numba") for kernel in (*FRONT, "unsampled", *(kernel for kernel, _ in ALONE))]

    assert Counter(names) == Counter(
        served.short_name(trip) for trip in served.trips if not trip.attributes.get(semconv.INTERNAL)
    )
    assert {None} == {trip.error_type for trip in served.trips}


def test_a_trip_of_the_front_belongs_to_its_request(served: Served) -> None:
    for kernel in FRONT[:-1]:
        request = served.requests[kernel]
        (span,) = served.arrived(kernel)

        assert (request.trace, request.span) == parent(span), kernel
        assert request.trace == served.trip(kernel).trace_id
        assert request.pid == served.trip(kernel).attributes[semconv.PROCESS_PID]


def test_the_request_has_a_span_of_the_server_s_own(served: Served) -> None:
    ids = Counter(span.span_id.hex() for span in served.spans if span.kind == Span.SPAN_KIND_SERVER)

    assert {1} == {ids[served.requests[kernel].span] for kernel in FRONT}


def test_a_trip_on_a_thread_without_the_context_has_a_trace_of_its_own(served: Served) -> None:
    (span,) = served.arrived("front_thread")

    assert "" == span.parent_span_id.hex()
    assert span.trace_id.hex() not in {request.trace for request in served.requests.values()}


def test_a_trip_of_an_unsampled_request_is_recorded_in_its_trace(served: Served, way: Way) -> None:
    assert served.requests["unsampled"].trace == served.trip("unsampled").trace_id
    assert (way == "opentelemetry-instrument") is bool(served.arrived("unsampled"))


@pytest.mark.parametrize(("asked", "kernel", "layer", "rank"), CARRIED)
def test_a_trip_of_a_worker_belongs_to_the_request_that_the_message_carries(
    served: Served, asked: str, kernel: str, layer: str, rank: int
) -> None:
    request = served.requests[asked]
    trip = of_rank(served, kernel, layer, rank)
    spans = [span for span in served.arrived(kernel, layer) if span.span_id.hex() == trip.span_id]

    assert [request.trace] == [span.trace_id.hex() for span in spans]
    if not layer.startswith("torch"):  # a graph is inside its frame, and a C++ kernel inside its graph
        assert [request.span] == [span.parent_span_id.hex() for span in spans]


@pytest.mark.parametrize(("kernel", "rank"), ALONE)
def test_a_trip_without_a_context_has_a_trace_of_its_own_with_process_and_rank(
    served: Served, kernel: str, rank: int
) -> None:
    (span,) = served.arrived(kernel)
    trip = of_rank(served, kernel, "numba", rank)

    assert "" == span.parent_span_id.hex()
    assert served.requests[kernel].trace != span.trace_id.hex()
    assert served.requests[kernel].pid == trip.attributes[semconv.PROCESS_PID]


def test_every_worker_has_its_rank_and_the_front_has_none(served: Served) -> None:
    ranks = {
        trip.attributes[semconv.PROCESS_PID]: (
            trip.attributes.get(semconv.RANK),
            trip.attributes.get(semconv.WORLD_SIZE),
        )
        for trip in served.trips
    }

    assert {
        served.pids["fork-0"]: (0, 2),
        served.pids["spawn-1"]: (1, 2),
        served.requests[FRONT[0]].pid: (None, None),
    } == ranks


def test_all_processes_are_one_run_and_each_a_session(served: Served) -> None:
    assert 1 == len({trip.session.run for trip in served.trips})
    assert 3 == len({trip.session.id for trip in served.trips})


def test_a_worker_loads_what_the_other_has_compiled(served: Served) -> None:
    outcomes = [of_rank(served, "scale", "triton", rank).outcome for rank in (0, 1)]
    ranks = by_rank(served.recording)

    assert [CompilationOutcome.COMPILED, CompilationOutcome.LOADED] == outcomes
    assert (1, 0, 1) == (ranks["shared_kernels"], ranks["duplicate_kernels"], ranks["unranked"]["processes"])


def test_compiles_while_serving_fail_a_deployment_test(served: Served) -> None:
    code, text = report(served.recording, "check", "--no-compile-after", "serving")

    assert 1 == code
    assert text.startswith("fails  no compile after serving\n")


def test_what_a_worker_leaves_behind(tmp_path_factory: pytest.TempPathFactory) -> None:
    # Each worker compiles one kernel and leaves; only one that returns flushes what its batch exporter holds.
    folder = tmp_path_factory.mktemp("leaving")
    workers = {
        f"{method}-{number}": how for method in ("fork", "spawn") for number, how in enumerate(LEAVING)
    }
    with Receiver() as receiver, start("code", folder, receiver) as server:
        for worker, how in workers.items():
            server.worker(worker, "numba", worker.replace("-", "_"))
            server.leave(worker, how)
        served = end(server, folder, receiver)
    kernels = {worker.replace("-", "_"): how for worker, how in workers.items()}
    lost = Counter(kernels[kernel] for kernel in kernels if not served.arrived(kernel))

    assert set(kernels) == {served.short_name(trip)[0] for trip in served.trips}
    assert len(kernels) == len(served.trips), "a trip is lost or there twice"
    assert {CompilationOutcome.COMPILED} == {trip.outcome for trip in served.trips}
    assert {"os._exit": 2, "SIGTERM": 2, "SIGKILL": 2} == lost, "what a batch exporter loses"
