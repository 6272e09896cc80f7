"""Reports: SQL on a recording, computed by `summary`, written by `render` and `as_json`.

An INPUT of another kind is first imported into a temporary recording by `opening`, so that there is one way
to compute a report.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO


def print_run(recording: Path, run: str, file: IO[str]) -> None:
    """Print the summary of one run.

    Args:
        recording: the file that it was recorded in.
        run: its id.
        file: where to print; with colours if it is a terminal.

    Raises:
        RecordingError: the recording cannot be read.
    """
    from otel_kernel.report.opening import opened_recording
    from otel_kernel.report.render import print_summary
    from otel_kernel.report.summary import summarize

    with opened_recording(recording) as connection:
        summary = summarize(connection, run)
    print_summary(summary, file)
