"""The children of a program that runs under `opentelemetry-instrument`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from otlp.receiver import Protocol, Receiver

from otel_kernel import semconv
from zero_code.launching import CHILDREN, attributes, command, compiled


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("subprocess", marks=CHILDREN),
        pytest.param("spawn", marks=CHILDREN),
        "fork and flush",
    ],
)
def test_the_trips_of_a_child_arrive_as_those_of_the_same_run(
    receiver: Receiver, protocol: Protocol, tmp_path: Path, acme_variables: dict[str, str], how: str
) -> None:
    done = command(["children.py", how], receiver, folder=tmp_path, protocol=protocol, changes=acme_variables)
    found = [attributes(trip) for trip in receiver.trips]

    assert (0, "") == (done.returncode, done.stderr)
    assert ["child", "parent"] == sorted(compiled(receiver))
    assert 1 == len({each[semconv.SESSION_RUN] for each in found})
    assert 2 == len({each[semconv.SESSION_ID] for each in found})
    assert 2 == len({each["process.pid"] for each in found})


def test_a_child_that_leaves_without_a_flush_is_in_the_recording(
    receiver: Receiver, tmp_path: Path, acme_variables: dict[str, str]
) -> None:
    changes = {**acme_variables, "OTEL_KERNEL_RECORDING": str(tmp_path / "trips.db")}
    done = command(["children.py", "fork and leave"], receiver, folder=tmp_path, changes=changes)
    with closing(sqlite3.connect(tmp_path / "trips.db")) as connection:
        recorded = connection.execute("SELECT kernel FROM records ORDER BY started_ns").fetchall()

    assert (0, "") == (done.returncode, done.stderr)
    assert [("acme.parent",), ("acme.child",)] == recorded
    assert ["parent"] == compiled(receiver), "what the SDK had not sent is lost with the child"


@CHILDREN
def test_options_of_the_parent_hold_in_its_children(
    receiver: Receiver, tmp_path: Path, acme_variables: dict[str, str]
) -> None:
    command(
        ["children.py", "subprocess"],
        receiver,
        folder=tmp_path,
        flags=["--kernel_level", "full"],
        changes=acme_variables,
    )

    assert ["ir of child", "ir of parent"] == sorted(
        str(attributes(trip)[semconv.IR_TEXT]) for trip in receiver.trips
    )
