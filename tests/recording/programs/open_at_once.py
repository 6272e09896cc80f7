"""Write one trip into each recording named on the input, as soon as its line comes."""

from __future__ import annotations

import sys
from pathlib import Path

from example_trips import a_record, other_session

from otel_kernel.recording.writer import RecordingSink

number = int(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    RecordingSink(Path(line.strip())).finished(a_record(session=other_session(number)))
    print("done", flush=True)
