"""Every kind of file that the Collector's file exporter writes is an INPUT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from example_trips import a_record
from mapping.carriers import span_of, with_ids

from otel_kernel import semconv
from otel_kernel.inputs import open_input
from otel_kernel.records import Trip
from servers.collector import CONFIGURATIONS, Collector
from servers.sending import grpc_exporter, send

pytestmark = pytest.mark.usefixtures("servers")

ALWAYS = {semconv.PROCESS_PID: 4711, semconv.THREAD_ID: 4712, semconv.DEVICE_LOADED: True}
NATIVE = "--feature-gates=exporter.file.nativeCompression"


def some_trips(number: int) -> list[Trip]:
    return [
        with_ids(a_record(seq, ir=f"label {seq}\n" * 1000, source="\u2028é\n" * 1000, attributes=ALWAYS))
        for seq in range(number)
    ]


def send_all(collector: Collector, trips: list[Trip], batch: int) -> None:
    for start in range(0, len(trips), batch):
        send(grpc_exporter(collector), [span_of(trip) for trip in trips[start : start + batch]])


@pytest.mark.parametrize(
    ("file", "arguments"),
    [
        ({"format": "json"}, ()),
        ({"format": "proto", "append": False}, ()),
        ({"format": "json", "compression": "zstd", "append": False}, ()),
        ({"format": "proto", "compression": "zstd", "append": False}, ()),
        ({"format": "json", "compression": "zstd", "append": False}, (NATIVE,)),
        ({"format": "proto", "compression": "zstd", "append": False}, (NATIVE,)),
    ],
    ids=["json", "proto", "json zstd", "proto zstd", "json in one zstd file", "proto in one zstd file"],
)
def test_trips_come_out_of_it(tmp_path: Path, file: dict[str, Any], arguments: tuple[str, ...]) -> None:
    changes = {"exporters": {"file/trips": file}}
    sent = some_trips(40)
    config = CONFIGURATIONS / "otelcol-minimal.yaml"
    with Collector(config, tmp_path, changes=changes, arguments=arguments) as collector:
        send_all(collector, sent, batch=7)

    assert sent == list(open_input(tmp_path / "kernel-trips.jsonl"))


@pytest.mark.parametrize("compression", [{}, {"compression": "zstd"}], ids=["json", "json zstd"])
def test_trips_come_out_of_rotated_files_also_after_a_kill(
    tmp_path: Path, compression: dict[str, str]
) -> None:
    rotation = {"append": False, "rotation": {"max_megabytes": 1}, **compression}
    changes = {"exporters": {"file/trips": rotation}}
    sent = some_trips(400)
    collector = Collector(CONFIGURATIONS / "otelcol-minimal.yaml", tmp_path, changes=changes)
    collector.start()
    send_all(collector, sent[:200], batch=10)
    collector.kill()
    with collector:
        send_all(collector, sent[200:], batch=10)
    files = list(tmp_path.glob("kernel-trips*.jsonl"))
    found = open_input(f"{tmp_path}/kernel-trips*.jsonl")

    assert bool(compression) or len(files) > 1
    assert sent == sorted((each for each in found if isinstance(each, Trip)), key=lambda trip: trip.seq)
    assert (0, 0) == (found.problems, found.duplicates)
