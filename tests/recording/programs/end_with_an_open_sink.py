"""End while a sink is open, and let it go only when the modules that it is made of are empty."""

from __future__ import annotations

import sys
from pathlib import Path

from example_trips import a_record

from otel_kernel.recording.writer import RecordingSink

# Modules that something still holds at the end are emptied, this one after those that it imports; a runtime
# that holds on to ours does the same.
setattr(sys, "held_modules", dict(sys.modules))  # noqa: B010 - type checkers know no such attribute
sink = RecordingSink(Path(sys.argv[1]))
sink.finished(a_record())
