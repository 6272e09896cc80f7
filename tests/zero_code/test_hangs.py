"""A kernel that hangs is seen from outside before it ends, and after its process was killed."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from otlp.receiver import Receiver
from otlp.views import attributes_of
from run.launching import PYTHON, environment

from otel_kernel import semconv
from zero_code.launching import COMMAND, EVENTS, PROGRAMS, exporting_to

pytestmark = EVENTS

PAGE = (Path(__file__).parents[2] / "docs" / "hangs.md").read_text()
(SQL,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def hanging(
    receiver: Receiver, tmp_path: Path, acme_variables: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """A process in which a kernel hangs, once it does."""
    changes = {
        **acme_variables,
        **exporting_to(receiver, "http/protobuf"),
        "OTEL_KERNEL_RECORDING": str(tmp_path / "trips.db"),
        "OTEL_KERNEL_START_EVENTS": "true",
        "OTEL_METRIC_EXPORT_INTERVAL": "100",
        "OTEL_BLRP_SCHEDULE_DELAY": "100",
    }
    with subprocess.Popen(
        [COMMAND, PYTHON, str(PROGRAMS / "hang.py")],
        cwd=tmp_path,
        env=environment(changes),
        stdin=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it does not come to hold"
        time.sleep(0.05)


def unfinished(folder: Path) -> list[tuple[object, ...]]:
    """Return what the page's query finds in the recording."""
    with closing(sqlite3.connect(folder / "trips.db")) as connection:
        return connection.execute(SQL).fetchall()


def ages(receiver: Receiver) -> list[float]:
    return [
        metric.gauge.data_points[0].as_double
        for _, metric in receiver.metrics
        if metric.name == semconv.OLDEST_ACTIVE_METRIC
    ]


def test_the_gauge_the_event_and_the_rows_tell_of_a_hang(
    hanging: subprocess.Popen[str], receiver: Receiver, tmp_path: Path
) -> None:
    until(lambda: len([age for age in ages(receiver) if age > 0]) >= 2)
    until(lambda: receiver.logs)
    until(lambda: len(unfinished(tmp_path)) == 2)
    growing = [age for age in ages(receiver) if age > 0]
    ((scope, event),) = receiver.logs
    told = attributes_of(event.attributes)
    rows = unfinished(tmp_path)

    assert [] == receiver.spans, "no span has ended"
    assert sorted(growing) == growing
    assert ("otel_kernel.acme", semconv.START_EVENT) == (scope.name, event.event_name)
    assert ("acme.outer", hanging.pid) == (told[semconv.KERNEL_NAME], told["process.pid"])
    assert ["acme.outer", "acme.inner"] == [row[3] for row in rows]
    assert {("hang.py", hanging.pid, told["thread.id"])} == {row[:3] for row in rows}

    hanging.kill()
    hanging.wait()

    assert [row[:5] for row in rows] == [row[:5] for row in unfinished(tmp_path)]


def test_a_kernel_that_comes_to_an_end_leaves_nothing_unfinished(
    hanging: subprocess.Popen[str], receiver: Receiver, tmp_path: Path
) -> None:
    until(lambda: receiver.logs)
    hanging.communicate("")

    assert [] == unfinished(tmp_path)
    assert ["compile acme.inner", "compile acme.outer"] == [arrived.span.name for arrived in receiver.spans]
    assert 0 == ages(receiver)[-1]
    assert receiver.logs[0][1].span_id == receiver.spans[1].span.span_id
