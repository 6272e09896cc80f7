"""Draw the summary of a recording as README shows it.

    python docs/picture.py RECORDING FILE.svg

The recording is that of `make demo`: its last run, the warm one, is drawn.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console

from otel_kernel.report.opening import opened
from otel_kernel.report.render import render_summary
from otel_kernel.report.scope import run_of
from otel_kernel.report.summary import summarize


def draw(recording: Path, picture: Path) -> None:
    """Write the picture of the recording's last run."""
    console = Console(record=True, file=io.StringIO(), width=84, force_terminal=True, highlight=False)
    with opened(recording, print) as found:
        run = run_of(found.connection, None, str(recording))
        render_summary(summarize(found.connection, run), console)
    svg = console.export_svg(title="otel-kernel run -- python numba_pricing.py")
    # No font from somewhere else: a reader of README fetches nothing.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code, ", "")
    picture.write_text(svg)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
