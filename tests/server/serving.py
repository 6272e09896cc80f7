"""Starting the server in one of three ways, asking it for kernels, and reading what became of them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import httpx
import torch_store
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from otlp.receiver import Receiver
from otlp.views import attributes_of
from run.launching import BIN, OTEL_KERNEL, PYTHON, environment

from otel_kernel import semconv
from otel_kernel.recording.reader import read_trips
from otel_kernel.records import Trip

Way: TypeAlias = Literal["opentelemetry-instrument", "code", "run"]

PROGRAMS = Path(__file__).parent / "programs"
TESTS = Path(__file__).parents[1]

STARTS: Final[dict[str, Sequence[str]]] = {
    "opentelemetry-instrument": (str(BIN / "opentelemetry-instrument"),),
    "code": (),
    "run": (OTEL_KERNEL, "run", "--"),
}


@dataclass(frozen=True)
class Request:
    """A request that was answered."""

    trace: str
    """Id of its trace, as the server knew it."""
    span: str
    """Id of the span that the server had for it."""
    pid: int
    """The process that compiled for it."""


@dataclass
class Served:
    """What is known after a server has gone."""

    trips: list[Trip]
    """As they were recorded."""
    spans: list[Span]
    """All that arrived."""
    requests: dict[str, Request] = field(default_factory=dict[str, Request])
    """By the name of their kernel."""
    pids: dict[str, int] = field(default_factory=dict[str, int])
    """Of the workers."""
    recording: Path = Path()

    def trips_of(self, kernel: str, layer: str) -> list[Trip]:
        """Return the recorded trips of a kernel in a layer."""
        return [trip for trip in self.trips if (kernel, layer) == self.short_name(trip)]

    def trip(self, kernel: str) -> Trip:
        """Return the one recorded trip of a kernel of Numba."""
        (found,) = self.trips_of(kernel, "numba")
        return found

    @staticmethod
    def short_name(trip: Trip) -> tuple[str, str]:
        """Return what the server calls a kernel, and its layer."""
        return _short(trip.kernel), trip.layer

    def arrived(self, kernel: str, layer: str = "numba") -> list[Span]:
        """Return the spans of a kernel in a layer that have arrived."""
        found = [(span, attributes_of(span.attributes)) for span in self.spans]
        return [
            span
            for span, attributes in found
            if attributes.get(semconv.ROLE) == "trip"
            and attributes[semconv.LAYER] == layer
            and _short(str(attributes[semconv.KERNEL_NAME])) == kernel
        ]

    def arrived_ids(self) -> list[tuple[str, int]]:
        """Return session and seq of all trips that have arrived."""
        found = [attributes_of(span.attributes) for span in self.spans]
        return [
            (str(attributes[semconv.SESSION_ID]), int(str(attributes[semconv.SESSION_SEQ])))
            for attributes in found
            if attributes.get(semconv.ROLE) == "trip"
        ]


def _short(name: str) -> str:
    """Return `kernel` of `module.kernel`, `module.kernel[forward]` and `jit(kernel)`."""
    return name.removeprefix("jit(").removesuffix(")").rpartition(".")[2].partition("[")[0]


class Server:
    """A server that runs; to be used as a context manager, which leaves none behind."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self.requests: dict[str, Request] = {}
        self.pids: dict[str, int] = {}
        port = folder / "port"
        while not port.exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{port.read_text()}", timeout=200)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()  # its engine and workers end when their pipes do
            self._process.communicate()

    def _get(self, path: str) -> Any:
        answer = self._client.get(path)
        assert 200 == answer.status_code, answer.text
        return answer.json()

    def here(self, how: str, kernel: str) -> None:
        """Compile in the front, in a thread or not."""
        self._asked(kernel, self._get(f"/here/{how}/{kernel}"))

    def unsampled(self, kernel: str) -> None:
        """Compile in the front, in a request that is not sampled."""
        self._asked(kernel, self._get(f"/unsampled/{kernel}"))

    def worker(self, worker: str, runtime: str, kernel: str, *, context: bool = True) -> None:
        """Compile in a worker, which is started if it is not there yet."""
        answer = self._get(f"/worker/{worker}/{runtime}/{kernel}?context={context}")
        self._asked(kernel, answer)
        self.pids[worker] = answer["pid"]

    def leave(self, worker: str, how: str) -> None:
        """Make a worker leave, and wait until it is gone."""
        self._get(f"/leave/{worker}/{how}")

    def stop(self) -> tuple[int, str]:
        """Stop it; return its exit code and what it printed."""
        self._get("/stop")
        self._client.close()
        output, _ = self._process.communicate(timeout=100)
        return self._process.returncode, output

    def _asked(self, kernel: str, answer: Any) -> None:
        self.requests[kernel] = Request(answer["trace"], answer["span"], answer["pid"])


def start(way: Way, folder: Path, receiver: Receiver) -> Server:
    """Start a server in `folder`, which records to `recording.db` there and exports to `receiver`."""
    store = folder / "store"
    torch_store.copy_to(store)
    changes = {
        **torch_store.environment(store),
        "WAY": way,
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.http_port}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_BSP_SCHEDULE_DELAY": "600000",  # so that a batch is sent when it is flushed, and not before
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_KERNEL_RECORDING": str(folder / "recording.db"),
        "OTEL_KERNEL_SERVING_AFTER": "0",
        "PYTHONPATH": os.pathsep.join(map(str, (PROGRAMS, TESTS))),
        "JAX_PLATFORMS": "cpu",
        "TRITON_DEFAULT_FP_FUSION": "1",
    }
    process = subprocess.Popen(
        [*STARTS[way], PYTHON, str(PROGRAMS / "front.py")],
        cwd=folder,
        env=environment(changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return Server(process, folder)


def end(server: Server, folder: Path, receiver: Receiver) -> Served:
    """Stop a server and return what is known."""
    code, output = server.stop()
    assert 0 == code, output
    path = folder / "recording.db"
    return Served(
        trips=[each for each in read_trips(path) if isinstance(each, Trip)],
        spans=[arrived.span for arrived in receiver.spans],
        requests=server.requests,
        pids=server.pids,
        recording=path,
    )


def report(recording: Path, *arguments: str) -> tuple[int, str]:
    """Return exit code and output of a reading command."""
    done = subprocess.run(
        [OTEL_KERNEL, *arguments, str(recording)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    return done.returncode, done.stdout


def by_rank(recording: Path) -> Any:
    """Return what `report --by rank` says of a recording."""
    code, output = report(recording, "report", "--by", "rank", "--json")
    assert 0 == code
    return json.loads(output)
