"""The minimal configuration: a real program's trips through a real Collector into its file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from otlp.receiver import Protocol

from otel_kernel.inputs import open_input
from otel_kernel.records import Trip
from servers.collector import CONFIGURATIONS, Collector, validate
from servers.program import fields, run

MINIMAL = CONFIGURATIONS / "otelcol-minimal.yaml"

pytestmark = pytest.mark.usefixtures("servers")


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    """A Collector as the minimal configuration makes it."""
    with Collector(MINIMAL, tmp_path) as started:
        yield started


def trips_of(folder: Path) -> list[Trip]:
    found = list(open_input(folder / "kernel-trips.jsonl"))

    assert [] == [str(each) for each in found if not isinstance(each, Trip)]
    return [each for each in found if isinstance(each, Trip)]


def endpoint(collector: Collector, protocol: Protocol) -> str:
    # Our name for gRPC is a scheme, as ports of tests say nothing.
    return collector.grpc if protocol == "grpc" else collector.http


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
@pytest.mark.parametrize("level", ["basic", "full"])
def test_trips_come_out_of_the_file_as_they_went_in(
    collector: Collector, tmp_path: Path, protocol: Protocol, level: str
) -> None:
    sent = run(tmp_path, endpoint(collector, protocol), level=level)
    collector.stop()

    assert 3 <= len(sent)
    assert (level == "full") == any(isinstance(trip.ir, str) for trip in sent)
    assert fields(sent) == fields(trips_of(tmp_path))


def test_a_restart_leaves_what_was_written_before(collector: Collector, tmp_path: Path) -> None:
    cold = run(tmp_path, collector.http)
    collector.stop()
    collector.start()
    warm = run(tmp_path, collector.http)
    collector.stop()

    assert {"loaded"} <= {trip.outcome.value for trip in warm if trip.outcome}
    assert fields([*cold, *warm]) == fields(trips_of(tmp_path))


def test_the_log_has_no_warning(collector: Collector, tmp_path: Path) -> None:
    run(tmp_path, collector.http)
    collector.stop()

    assert [] == collector.complaints()


def test_a_configuration_that_is_wrong_is_refused(tmp_path: Path) -> None:
    config = yaml.safe_load(MINIMAL.read_text())
    config["processors"]["filter/trips"]["trace_conditions"] = ["span.attributes[ == nil"]
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(json.dumps(config))

    assert "" == validate(MINIMAL)
    assert "filter/trips" in validate(wrong)
