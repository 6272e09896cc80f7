"""`otel-kernel receive`."""

from __future__ import annotations

import ipaddress
import os
from contextlib import closing
from pathlib import Path
from typing import Final

import click

from otel_kernel.cli.errors import FAILED, say
from otel_kernel.cli.reading import Problems
from otel_kernel.options import VARIABLE_PREFIX
from otel_kernel.recording.errors import RecordingError
from otel_kernel.recording.file import create_or_check, default_path
from otel_kernel.recording.writer import RecordingSink
from otel_kernel.report.words import count

TOKEN_VARIABLE: Final = VARIABLE_PREFIX + "RECEIVE_TOKEN"


@click.command()
@click.option(
    "--listen", metavar="HOST:PORT", default="127.0.0.1:4318", show_default=True, help="Where to listen."
)
@click.option(
    "--recording",
    type=click.Path(path_type=Path),
    help="File to write to, which may hold other trips already; by default that of this host.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help=f"File with the token that senders must show as `Authorization: Bearer TOKEN`. {TOKEN_VARIABLE} has the "
    "token itself.",
)
def receive(listen: str, recording: Path | None, token_file: Path | None) -> int:
    """Write the trips that a Collector or an SDK sends by OTLP over HTTP to a recording, until it is interrupted.

    Protobuf and JSON are taken, plain or packed by gzip, deflate or zstd. A request is acknowledged when its trips
    are in the recording, so that a sender keeps what is not. Spans of others are passed over.
    """
    from otel_kernel.receiving.app import PATH, ReceiverApp
    from otel_kernel.receiving.server import Receiving, listening

    token = token_file.read_text().strip() if token_file is not None else os.environ.get(TOKEN_VARIABLE)
    if token == "":
        raise click.UsageError(f"the token is empty: write one into {token_file or TOKEN_VARIABLE}")
    path = recording or default_path()
    create_or_check(path)
    problems = Problems()
    failures: list[RecordingError] = []

    def fail(error: RecordingError) -> None:
        failures.append(error)
        server.end()

    with closing(listening(listen)) as listener, closing(RecordingSink(path, foreign=True)) as sink:
        app = ReceiverApp(sink, token=token, on_problem=problems, on_failure=fail)
        server = Receiving(app, listener)
        host, port = listener.getsockname()[:2]
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if token is None and not ipaddress.ip_address(host).is_loopback:
            say(f"anyone who reaches {where} can write: set {TOKEN_VARIABLE}, or listen on 127.0.0.1")
        say(f"listening on http://{where}{PATH}, recording to {path}")
        server.run()
    say(f"{count(app.trips, 'trip')} written, {count(app.other_spans, 'span')} of others passed over")
    problems.exit_code()
    if failures:
        say(str(failures[0]))
        return FAILED
    return 0
