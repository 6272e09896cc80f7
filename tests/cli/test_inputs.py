"""Every command that reads takes every kind of INPUT."""

from __future__ import annotations

from pathlib import Path

import pytest
from report.shop import BEFORE, ENDED
from written_trips import write_otlp, write_recording, write_trips

from cli.command import otel_kernel

READERS = {
    "diff": "\n  shop.stock\n    2 compiled in 1.60 s (800 ms each) -> 1 loaded in 400 ms\n",
    "export": '"kernel": "shop.price"',
    "list": "  shop.price\n",
    "report": "  shop.price\n",
    "runs": "22222222  2023-11-14 22:13:20 UTC, 2 processes\n",
    "show": "kernel          shop.price\n",
}


@pytest.mark.parametrize(
    "kind", ["recording", "spans", "trips", "spans on stdin", "trips on stdin", "pattern"]
)
@pytest.mark.parametrize("command", READERS)
def test_every_reader_takes_every_kind(command: str, kind: str, tmp_path: Path) -> None:
    recording = write_recording(tmp_path / "r.db", (*BEFORE, *ENDED))
    spans = write_otlp(tmp_path / "1.jsonl", (*BEFORE, *ENDED[:5]))
    if kind == "pattern":
        trips = write_trips(tmp_path / "2.jsonl", ENDED[5:])
    else:
        spans = write_otlp(spans, (*BEFORE, *ENDED))
        trips = write_trips(tmp_path / "2.jsonl", (*BEFORE, *ENDED))
    spec, stdin = {
        "recording": (str(recording), b""),
        "spans": (str(spans), b""),
        "trips": (str(trips), b""),
        "spans on stdin": ("-", spans.read_bytes()),
        "trips on stdin": ("-", trips.read_bytes()),
        "pattern": (f"{tmp_path}/*.jsonl", b""),
    }[kind]

    done = otel_kernel(command, *(["shop.price"] if command == "show" else []), spec, stdin=stdin)

    assert (0, "") == (done.returncode, done.stderr)
    assert READERS[command] in done.stdout
