"""`otel-kernel replay` to a real OTLP endpoint."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import cbor2
import pytest
from cli.command import otel_kernel, refusal
from otlp.receiver import Arrived, Protocol, Receiver
from otlp.views import attributes_of

from interop.cubecl.environments import FULL, NAMES, execute, rows, standalone, unpacked
from interop.cubecl.following import Following, found_in
from otel_kernel import semconv
from otel_kernel.cubecl.reading import read_environment
from otel_kernel.inputs import Problem, open_input
from otel_kernel.kinds import Stamped
from otel_kernel.records import Trip


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An OTLP endpoint."""
    with Receiver() as started:
        yield started


def replayed(
    receiver: Receiver, path: Path, *options: str | Path, protocol: Protocol = "http/protobuf"
) -> str:
    """Replay an environment and return what the command prints."""
    done = otel_kernel("replay", *options, "--otlp", receiver.endpoint(protocol), path)
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def records_of(path: Path) -> list[Trip | Stamped]:
    return [each for each in read_environment(path) if not isinstance(each, Problem)]


def by_name(receiver: Receiver, session: bytes) -> dict[str, list[Any]]:
    """Return the spans of a trace by their names."""
    spans: dict[str, list[Any]] = {}
    for arrived in receiver.spans:
        if arrived.span.trace_id == session:
            spans.setdefault(arrived.span.name, []).append(arrived.span)
    return spans


@pytest.mark.parametrize("name", NAMES)
def test_every_record_arrives_as_it_is(tmp_path: Path, receiver: Receiver, name: str) -> None:
    path = unpacked(name, tmp_path)
    replayed(receiver, path)

    assert records_of(path) == found_in(receiver)


def test_grpc_takes_them_too(tmp_path: Path, receiver: Receiver) -> None:
    path = unpacked(FULL, tmp_path)
    replayed(receiver, path, protocol="grpc")

    assert records_of(path) == found_in(receiver)


def test_a_session_is_a_trace_and_its_resource(tmp_path: Path, receiver: Receiver) -> None:
    path = unpacked(FULL, tmp_path)
    said = replayed(receiver, path).splitlines()
    resources = [
        attributes_of(spans.resource.attributes)
        for request in receiver.trace_requests
        for spans in request.resource_spans
    ]
    traces = list(dict.fromkeys(arrived.span.trace_id.hex() for arrived in receiver.spans))

    assert [line.split()[1] for line in said[:-1]] == traces
    assert ["models build shop", "second build", "second build again"] == [
        resource[semconv.SESSION_LABEL] for resource in resources
    ]
    assert {"cubecl"} == {resource["service.name"] for resource in resources}
    assert {("cubecl", "0.12.0-pre.1", "linux", "amd64")} == {
        tuple(
            resource[name]
            for name in ("process.runtime.name", "process.runtime.version", "os.type", "host.arch")
        )
        for resource in resources
    }
    assert 3 == len({resource["service.instance.id"] for resource in resources})
    assert {str(path)} == {resource[semconv.STORE_LOCATION] for resource in resources}


def test_the_service_may_have_another_name(tmp_path: Path, receiver: Receiver) -> None:
    done = otel_kernel(
        "replay",
        "--otlp",
        receiver.endpoint("http/protobuf"),
        unpacked(FULL, tmp_path),
        variables={"OTEL_SERVICE_NAME": "shop"},
    )
    (resource, *_) = [
        attributes_of(spans.resource.attributes) for spans in receiver.trace_requests[0].resource_spans
    ]

    assert 0 == done.returncode
    assert "shop" == resource["service.name"]


def test_spans_lie_inside_what_enclosed_them(tmp_path: Path, receiver: Receiver) -> None:
    replayed(receiver, unpacked(FULL, tmp_path))
    first = receiver.spans[0].span.trace_id
    spans = by_name(receiver, first)
    names = {span.span_id: name for name, those in spans.items() for span in those}
    parents = {(name, names.get(span.parent_span_id)) for name, those in spans.items() for span in those}

    assert {
        ("load weights", None),
        ("compile batch", "load weights"),
        ("compile batch", "tune producer-double"),
        ("compile batch", None),
        ("compile producer::scale::Scale", "compile batch"),
        ("compile producer::shift::Shift", "compile batch"),
        ("tune producer-double", None),
        ("try by scale", "tune producer-double"),
        ("try by shift", "tune producer-double"),
        ("memory model loaded", None),
    } == parents


def test_times_are_those_of_the_records(tmp_path: Path, receiver: Receiver) -> None:
    path = unpacked(FULL, tmp_path)
    replayed(receiver, path)
    trips = [each for each in records_of(path) if isinstance(each, Trip)]
    spans = [each.span for each in receiver.spans if each.span.name.startswith("compile producer")]

    assert [(trip.started_ns, trip.started_ns + (trip.duration_ns or 0)) for trip in trips] == [
        (span.start_time_unix_nano, span.end_time_unix_nano) for span in spans
    ]


def test_trials_follow_one_another_in_their_tune(tmp_path: Path, receiver: Receiver) -> None:
    path = unpacked(FULL, tmp_path)
    replayed(receiver, path)
    spans = {name: those[0] for name, those in by_name(receiver, receiver.spans[0].span.trace_id).items()}
    tune, first, second = (spans[name] for name in ("tune producer-double", "try by scale", "try by shift"))

    assert tune.start_time_unix_nano == first.start_time_unix_nano
    assert first.end_time_unix_nano == second.start_time_unix_nano
    assert second.end_time_unix_nano <= tune.end_time_unix_nano


def test_ids_are_the_same_however_often_it_is_replayed(tmp_path: Path, receiver: Receiver) -> None:
    path = unpacked(FULL, tmp_path)
    replayed(receiver, path)
    once = list(receiver.spans)
    moved = Path(shutil.move(standalone(FULL, tmp_path / "b"), tmp_path / "moved.db"))
    replayed(receiver, moved)

    def ids(spans: list[Arrived]) -> list[tuple[bytes, bytes, bytes]]:
        return [(each.span.trace_id, each.span.span_id, each.span.parent_span_id) for each in spans]

    assert ids(once) == ids(receiver.spans[len(once) :])
    assert len(once) == len({each.span.span_id for each in once})


def test_our_readers_show_each_record_once_however_often_it_is_replayed(
    tmp_path: Path, receiver: Receiver
) -> None:
    path = unpacked(FULL, tmp_path)
    replayed(receiver, path)
    replayed(receiver, path)
    lines = tmp_path / "spans.jsonl"
    lines.write_text("".join(json_of(request) for request in receiver.trace_requests))
    found = open_input(lines)
    records = list(found.all())
    expected = records_of(path)

    assert expected == [
        replace(each, trace_id=None, span_id=None) if isinstance(each, Trip) else each for each in records
    ]
    assert len(expected) == found.duplicates
    assert Counter(type(each).__name__ for each in expected)["Trip"] == found.trips


def json_of(request: Any) -> str:
    from google.protobuf.json_format import MessageToDict

    return json.dumps(MessageToDict(request)) + "\n"


def test_a_long_text_goes_into_a_text_file(tmp_path: Path, receiver: Receiver) -> None:
    path = standalone(FULL, tmp_path)
    key, row = rows(path, "compilation")[0]
    row["record"]["source"] = "x" * 200_000
    execute(
        path,
        "UPDATE entries SET value = ? WHERE key = ? AND namespace LIKE '%compilation'",
        cbor2.dumps(row),
        key,
    )
    replayed(receiver, path, "--text-files", tmp_path / "texts")
    lines = tmp_path / "spans.jsonl"
    lines.write_text("".join(json_of(request) for request in receiver.trace_requests))
    done = otel_kernel("export", "--text-files", tmp_path / "texts", lines)

    assert 200_000 == len(json.loads(done.stdout.splitlines()[0])["source"])


def test_a_folder_stands_for_all_its_environments(tmp_path: Path, receiver: Receiver) -> None:
    first = standalone(FULL, tmp_path)
    second = Path(shutil.move(standalone("0.12.0-pre.1-basic", tmp_path / "b"), tmp_path / "other.db"))
    said = replayed(receiver, tmp_path).splitlines()
    expected = records_of(second) + records_of(first)

    assert sorted(map(str, expected)) == sorted(map(str, found_in(receiver)))
    assert 7 == len(said)


def test_a_problem_is_said_and_the_rest_is_sent(tmp_path: Path, receiver: Receiver) -> None:
    path = standalone(FULL, tmp_path)
    expected = records_of(path)
    key, _ = rows(path, "compilation")[0]
    execute(path, "UPDATE entries SET value = x'ff' WHERE key = ? AND namespace LIKE '%compilation'", key)
    done = otel_kernel("replay", "--otlp", receiver.endpoint("http/protobuf"), path)

    assert 2 == done.returncode
    assert "records/v1/compilation [" in done.stderr
    assert len(expected) - 1 == len(found_in(receiver))


def test_what_cannot_be_replayed_is_refused_in_one_line(tmp_path: Path, real_lines: Path) -> None:
    url = "http://127.0.0.1:9"

    assert "must be like http://" in refusal("replay", "--otlp", "ftp://x", unpacked(FULL, tmp_path))
    assert f"there is no file {tmp_path}/no.db" in refusal("replay", "--otlp", url, tmp_path / "no.db")
    assert "no database" in refusal("replay", "--otlp", url, real_lines)
    assert "holds no CubeCL environment" in refusal("replay", "--otlp", url, real_lines.parent)
    assert "--state goes with --follow only" == refusal(
        "replay", "--otlp", url, "--state", tmp_path, tmp_path
    )


@pytest.fixture
def real_lines(tmp_path: Path) -> Path:
    """A file of JSON lines, which is no environment, in a folder of its own."""
    folder = tmp_path / "lines"
    folder.mkdir()
    return Path(shutil.copy(Path(__file__).parents[3] / "docs" / "trips.jsonl", folder))


def test_an_endpoint_that_refuses_is_said_in_one_line(tmp_path: Path) -> None:
    with Receiver(max_bytes=10) as narrow:
        url = narrow.endpoint("http/protobuf")
        said = refusal("replay", "--otlp", url, unpacked(FULL, tmp_path))

    assert said.startswith(f"{url} did not take the spans (")
    assert "413" in said


@pytest.fixture
def follow(receiver: Receiver, tmp_path: Path) -> Iterator[Callable[..., Following]]:
    """Starts followers, which end with the test."""
    started: list[Following] = []

    def start(path: Path, hold: float = 5) -> Following:
        started.append(Following(receiver, path, tmp_path / "state", hold))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.communicate()


Follow = Callable[..., Following]


def without(path: Path, session: int) -> None:
    """Prune a session as CubeCL does."""
    with closing(sqlite3.connect(path)) as connection:
        entries = connection.execute(
            "SELECT namespace, key FROM entries WHERE namespace LIKE 'records/%'"
        ).fetchall()
        for namespace, key in entries:
            stamp = cbor2.loads(key)
            if session == (stamp if isinstance(stamp, int) else stamp[0]):
                connection.execute("DELETE FROM entries WHERE namespace = ? AND key = ?", (namespace, key))
        connection.commit()


def test_following_sends_all_that_is_there_and_ends_well(
    tmp_path: Path, receiver: Receiver, follow: Follow
) -> None:
    path = unpacked(FULL, tmp_path)
    expected = records_of(path)
    following = follow(path)
    following.until(lambda: len(found_in(receiver)) == len(expected))
    code, out, err = following.end()

    assert expected == found_in(receiver)
    assert (0, [f"otel-kernel: following {path}"]) == (code, err)
    assert out.startswith(f"{len(receiver.spans)} spans sent to ")


def test_following_waits_for_an_environment_that_is_not_there_yet(
    tmp_path: Path, receiver: Receiver, follow: Follow
) -> None:
    source = standalone(FULL, tmp_path / "source")
    path = tmp_path / "shop.db"
    following = follow(path)
    assert following.process.stderr is not None
    following.process.stderr.readline()

    assert f"otel-kernel: waiting for {path}\n" == following.process.stderr.readline()

    shutil.move(source, path)
    following.until(lambda: found_in(receiver) == records_of(path))
    assert 0 == following.end()[0]


def test_a_restart_sends_only_what_is_new(tmp_path: Path, receiver: Receiver, follow: Follow) -> None:
    path = standalone(FULL, tmp_path)
    expected = records_of(path)
    last = int(expected[-1].session.id[16:], 16)
    whole = path.read_bytes()
    without(path, last)
    first = follow(path)
    first.until(lambda: found_in(receiver) == records_of(path))
    assert 0 == first.end()[0]
    path.write_bytes(whole)
    second = follow(path)
    second.until(lambda: len(found_in(receiver)) == len(expected))
    assert 0 == second.end()[0]

    assert expected == found_in(receiver)


def test_pruning_sends_nothing_again(tmp_path: Path, receiver: Receiver, follow: Follow) -> None:
    path = standalone(FULL, tmp_path)
    expected = records_of(path)
    following = follow(path)
    following.until(lambda: len(found_in(receiver)) == len(expected))
    without(path, int(expected[0].session.id[16:], 16))
    time.sleep(0.5)
    assert 0 == following.end()[0]

    assert expected == found_in(receiver)


def test_an_endpoint_that_is_down_gets_all_when_it_is_up_again(
    tmp_path: Path, receiver: Receiver, follow: Follow
) -> None:
    receiver.max_bytes = 10
    path = unpacked(FULL, tmp_path)
    following = follow(path)
    following.until(lambda: receiver.refused > 1)
    receiver.max_bytes = 2**22
    following.until(lambda: len(found_in(receiver)) == len(records_of(path)))
    code, _, err = following.end()

    assert records_of(path) == found_in(receiver)
    assert 0 == code
    assert 1 == sum("did not take the spans" in line for line in err)


def test_a_record_waits_for_what_may_enclose_it(tmp_path: Path, receiver: Receiver, follow: Follow) -> None:
    path = standalone(FULL, tmp_path)
    whole = path.read_bytes()
    expected = records_of(path)
    execute(path, "DELETE FROM entries WHERE namespace = 'records/v1/marks'")
    following = follow(path, 600)
    # The first session waits for its number 0, the mark; the others have no gap.
    others = [each for each in expected if each.session != expected[0].session]
    following.until(lambda: found_in(receiver) == others)
    path.write_bytes(whole)
    following.until(lambda: len(found_in(receiver)) == len(expected))
    assert 0 == following.end()[0]
    batch = next(
        each.span for each in receiver.spans if each.span.name == "compile batch" and each.span.parent_span_id
    )
    mark = next(each.span for each in receiver.spans if each.span.name == "load weights")

    assert expected == found_in(receiver)
    assert mark.span_id in {each.span.parent_span_id for each in receiver.spans}
    assert batch


def test_a_damaged_state_is_refused(tmp_path: Path) -> None:
    path = unpacked(FULL, tmp_path)
    with Receiver() as receiver:
        url = receiver.endpoint("http/protobuf")
        following = Following(receiver, path, tmp_path / "state")
        following.until(lambda: len(found_in(receiver)) > 0)
        following.end()
        (state,) = (tmp_path / "state").iterdir()
        state.write_text("[]")
        done = otel_kernel("replay", "--follow", "--state", tmp_path / "state", "--otlp", url, path)

    assert 2 == done.returncode
    assert f"{state} does not say what was sent: remove it" in done.stderr
