"""`otel-kernel replay`."""

from __future__ import annotations

import hashlib
import signal
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from otel_kernel.cli.errors import FAILED, say
from otel_kernel.cli.reading import Problems
from otel_kernel.cubecl.environment import Environment, opened
from otel_kernel.inputs import InputError
from otel_kernel.recording.file import default_path
from otel_kernel.replay.following import HOLD_SECONDS, Follower, Progress
from otel_kernel.replay.ids import trace_id
from otel_kernel.replay.sending import Sender, SessionToSend, by_session, environments_in, read_session
from otel_kernel.report.words import count, moment, safe
from otel_kernel.texts import TextFiles

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--otlp",
    "url",
    metavar="URL",
    required=True,
    help="Where the spans go: http://127.0.0.1:4318 or grpc://127.0.0.1:4317.",
)
@click.option("--follow", is_flag=True, help="Go on with what programs add, until SIGTERM.")
@click.option(
    "--interval",
    metavar="SECONDS",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    help="With --follow: time between two looks at FILE.",
)
@click.option(
    "--hold",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=HOLD_SECONDS,
    show_default=True,
    help="With --follow: how long a record waits for one that began before it and goes on, such as a mark "
    "around it, so that it is sent as a part of that.",
)
@click.option(
    "--state",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="With --follow: where is kept what was sent, so that a restart sends nothing again; by default beside "
    "the recording of this host.",
)
@click.option(
    "--text-files",
    "text_folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Where texts go that are too long for their spans.",
)
def replay(
    path: Path,
    url: str,
    follow: bool,
    interval: float,
    hold: float,
    state: Path | None,
    text_folder: Path | None,
) -> int:
    """Send the records of a CubeCL environment as spans, each session as one trace.

    FILE is an environment, or a folder of them. Its records keep their times, and their spans the same ids
    however often they are sent.
    """
    if state is not None and not follow:
        raise click.UsageError("--state goes with --follow only")
    texts = None if text_folder is None else TextFiles(text_folder)
    with closing(Sender(url, texts)) as sender:
        if follow:
            return _follow(path, url, sender, interval, hold, state)
        problems = Problems()
        environments = environments_in(path)
        if not environments:
            raise InputError(f"{path} holds no CubeCL environment, no file *.db")
        for each in environments:
            _replay(each, sender, problems)
        click.echo(f"{count(sender.spans, 'span')} sent to {url}")
        return problems.exit_code()


def _replay(path: Path, sender: Sender, problems: Problems) -> None:
    with opened(path) as environment:
        for problem in environment.problems:
            problems(problem)
        for session, kinds in by_session(environment.stamps).items():
            records, lost = read_session(environment, session, frozenset(kinds))
            for problem in lost:
                problems(problem)
            if records:
                sender.send(environment, SessionToSend(session, records, None))
                click.echo(_line(environment, session, records[0].session.id, kinds))


def _line(environment: Environment, number: int, session_id: str, kinds: Mapping[int, str]) -> str:
    session = environment.sessions.get(number)
    label = "" if session is None or session.label is None else f"  {safe(session.label)}"
    kinds_said = ", ".join(f"{n} {safe(kind)}" for kind, n in sorted(Counter(kinds.values()).items()))
    return f"trace {trace_id(session_id):032x}  {moment(number)}{label}: {kinds_said}"


def _follow(path: Path, url: str, sender: Sender, interval: float, hold: float, state: Path | None) -> int:
    folder = state if state is not None else default_path().parent / "replay"
    stopped = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    signal.signal(signal.SIGTERM, stop)
    followers: dict[Path, Follower] = {}
    say(f"following {path}")
    while True:
        last = stopped.is_set()
        for each in environments_in(path):
            if each not in followers:
                followers[each] = Follower(each, sender, Progress(folder / _state_name(each, url)), say, hold)
            followers[each].poll(last=last)
        if last:
            break
        stopped.wait(interval)
    click.echo(f"{count(sender.spans, 'span')} sent to {url}")
    return FAILED if any(each.failed for each in followers.values()) else 0


def _state_name(path: Path, url: str) -> str:
    return hashlib.blake2b(f"{path.resolve()}\0{url}".encode(), digest_size=16).hexdigest() + ".json"
