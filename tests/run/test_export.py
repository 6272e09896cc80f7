"""With `--otlp` every trip also arrives at an endpoint, for a program that knows nothing of OpenTelemetry."""

from __future__ import annotations

from pathlib import Path

import pytest
from otlp.receiver import Protocol, Receiver

from run.launching import PROGRAMS, PYTHON, our_lines, recorded, run


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_trips_of_all_processes_arrive_and_are_recorded(protocol: Protocol, tmp_path: Path) -> None:
    with Receiver() as receiver:
        result = run(
            [PYTHON, str(PROGRAMS / "kernels.py"), "subprocess"],
            tmp_path,
            options=["--otlp", receiver.endpoint(protocol)],
        )

    assert (0, []) == (result.returncode, our_lines(result.stderr))
    names = sorted(arrived.span.name for arrived in receiver.spans)
    assert ["compile __main__.child_kernel", "compile __main__.kernel"] == names
    assert [("child_kernel",), ("kernel",)] == recorded(tmp_path)


def test_endpoint_that_is_away_costs_no_record(tmp_path: Path) -> None:
    with Receiver() as receiver:
        away = receiver.endpoint("http/protobuf")
    result = run(
        [PYTHON, str(PROGRAMS / "kernels.py")],
        tmp_path,
        options=["--otlp", away],
        changes={"OTEL_EXPORTER_OTLP_TIMEOUT": "1"},
    )

    assert 0 == result.returncode
    assert "compiled kernel\n" == result.stdout
    assert [("kernel",)] == recorded(tmp_path)
