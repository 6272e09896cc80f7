"""The recording that `otel-kernel run` writes here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from otel_kernel.doctor.findings import Area, Fact, Finding, State
from otel_kernel.doctor.places import can_be_written
from otel_kernel.options import VARIABLE_PREFIX
from otel_kernel.recording import schema
from otel_kernel.recording.errors import RecordingError, damaged, explained
from otel_kernel.recording.file import default_path, log_size, real_path
from otel_kernel.recording.mounts import network_file_system
from otel_kernel.recording.reader import connect_readonly
from otel_kernel.report.words import count, size

_VARIABLE: Final = VARIABLE_PREFIX + "RECORDING"


def look() -> Iterator[Finding]:
    """Yield one finding."""
    try:
        path = real_path(Path(os.environ.get(_VARIABLE) or default_path()))
    except RecordingError as error:
        yield Finding(Area.RECORDING, "none", State.ATTENTION, str(error), f"name it by {_VARIABLE}")
        return
    name, exists = str(path), path.exists()
    facts: dict[str, Fact] = {
        "exists": exists,
        "writable": can_be_written(path) and can_be_written(path.parent),
    }
    if not facts["writable"]:
        advice = f"make it and its folder writable for this user, or name another file by {_VARIABLE}"
        yield Finding(Area.RECORDING, name, State.ATTENTION, "cannot be written", advice, facts)
    elif exists:
        yield _finding(path, facts)
    else:
        yield Finding(
            Area.RECORDING,
            name,
            State.WELL,
            "not there yet: the first `otel-kernel run` makes it",
            None,
            facts,
        )


def _finding(path: Path, facts: Mapping[str, Fact]) -> Finding:
    name = str(path)
    try:
        with closing(connect_readonly(path)) as connection, explained(path):
            found: str = connection.execute("PRAGMA quick_check (1)").fetchone()[0]
            if found != "ok":
                raise damaged(path, " ".join(found.split()))
            runs: int = connection.execute("SELECT count(DISTINCT run) FROM sessions").fetchone()[0]
    except RecordingError as error:
        return Finding(Area.RECORDING, name, State.ATTENTION, str(error), None, facts)
    bytes_ = path.stat().st_size + log_size(path)
    facts = {**facts, "runs": runs, "bytes": bytes_, "tables": schema.USER_VERSION}
    text = f"{count(runs, 'run')}, {size(bytes_)}, tables of version {schema.USER_VERSION}"
    kind = network_file_system(path)
    if kind is None:
        return Finding(Area.RECORDING, name, State.WELL, text, None, facts)
    advice = f"name a file on a local disk by {_VARIABLE}: locks may not hold where several hosts write"
    return Finding(
        Area.RECORDING, name, State.NOTE, f"{text}, on a network file system ({kind})", advice, facts
    )
