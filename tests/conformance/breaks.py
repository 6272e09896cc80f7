"""Breaks the code once for every case, to see that the case fails.

    PYTHONPATH=tests python -m conformance.breaks [PART_OF_A_NAME ...]

Each break is made in a copy of the repository, where its case then runs. Prints one line for each, and ends with
1 if a case has passed all the same. `test_breaks.py` compares the table with the cases and with the code.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PARTS: Final = ("otel_kernel", "tests", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Break:
    """A change that makes the code wrong."""

    file: str
    """Below the root."""
    old: str
    """Stands in the file once."""
    new: str
    runtime: str = "numba"
    """For which the case is run."""

    def make(self, root: Path) -> None:
        """Change the file below `root`."""
        path = root / self.file
        path.write_text(path.read_text().replace(self.old, self.new))


_NUMBA = "instrumentors/numba/readers.py"
_TRITON = "instrumentors/triton/points.py"
_PATCHING = "otel_kernel/patching.py"
_SESSION = "otel_kernel/session.py"
_SHAPES = "otel_kernel/shapes.py"
_SPANS = "otel_kernel/spans.py"
_TRIP = "otel_kernel/trip.py"

_NO_ERROR = Break(_SPANS, "Status(StatusCode.ERROR, trip.message)", "Status(StatusCode.UNSET)")
_NOT_REJECTED = Break(_NUMBA, "trip.set(semconv.STORE_REJECTED, error_type(call.error))", "pass")
_LATE = Break(
    _SPANS,
    "mapping.start_attributes(trip), trip.started_ns,",
    "mapping.start_attributes(trip), trip.started_ns + 1,",
)
_ON_LAUNCH = Break(
    _TRITON,
    "POINTS: Final[tuple[Point | Slot, ...]] = (\n",
    """
def _each(call):
    from otel_kernel.records import CompilationOutcome
    from otel_kernel.trip import Begin

    trip = yield Begin("kernels.main_kernel", "triton")
    trip.outcome = CompilationOutcome.LOADED


POINTS: Final[tuple[Point | Slot, ...]] = (
    Point(_COMPILER, "CompiledKernel.launch_metadata", trip(_each)),
""",
    "triton",
)

BREAKS: Final[Mapping[str, Break]] = {
    "a failed compilation passes untouched": Break(
        _SHAPES,
        "                _end(where, *visit, None, error)\n                raise\n",
        "                _end(where, *visit, None, error)\n                raise RuntimeError from error\n",
    ),
    "a failed compilation is a trip without outcome": _NO_ERROR,
    "control flow is no failure": Break(_NUMBA, "trip.abandon(Abandoned.RETRY)", "pass"),
    "the context of the program is as it was": Break(_TRIP, "otel_context.detach(context_token)", "pass"),
    "readers that raise": Break(
        _SHAPES,
        "    try:\n        step(*arguments)\n    except Exception:\n        faults.caught(where)\n",
        "    step(*arguments)\n",
    ),
    "a sink that raises": Break(
        _TRIP,
        "sink.finished(trip)\n            except Exception:",
        "sink.finished(trip)\n            except OSError:",
    ),
    "an exporter that raises": Break(
        _TRIP, "error=event)\n            except Exception:", "error=event)\n            except OSError:"
    ),
    "a span that cannot start": Break(
        _TRIP,
        "span = spans.start(self, parent)\n            except Exception:",
        "span = spans.start(self, parent)\n            except OSError:",
    ),
    "every order of import and instrument": Break(
        _PATCHING, "        self.enabled = False\n        for holder", "        return\n        for holder"
    ),
    "every point is restored by identity": Break(
        _PATCHING, "if _present(self.holder, self.attribute) is self.installed:", "if False:"
    ),
    "another tool wrapped before": Break(
        _PATCHING,
        "setattr(self.holder, self.attribute, self.original)",
        "setattr(self.holder, self.attribute, inspect.unwrap(self.original))",
    ),
    "another tool wrapped after": Break(
        _PATCHING, "if _present(self.holder, self.attribute) is self.installed:", "if True:"
    ),
    "nothing is kept alive by many trips": Break(
        _TRIP,
        "self.result = self.error = self.parent = self.ir = self.source = None",
        'vars(semconv).setdefault("kept", []).append(self)',
    ),
    "two threads on one kernel": Break(
        _NUMBA, "if arguments is None or arguments in dispatcher.overloads:", "if arguments is None:"
    ),
    "two threads on two kernels": Break(_SESSION, "return next(_seq)", "return 0"),
    "a forked child has a session of its own": Break(
        _SESSION, "os.register_at_fork(after_in_child=lambda: _begin(_session.run))\n", ""
    ),
    "a child that was forked inside a trip": Break(
        _TRIP, "return trip if trip.session is session.current() else None", "return trip"
    ),
    "a spawned child belongs to the run": Break(_SESSION, "os.environ[RUN_VARIABLE] = run", "pass"),
    "a corrupted entry": _NOT_REJECTED,
    "an emptied entry": _NOT_REJECTED,
    "a deleted entry": Break(
        _NUMBA,
        '    if call.result is not None:\n        trip.notes["loaded"] = True\n    elif',
        '    trip.notes["loaded"] = True\n    if',
    ),
    "a read only store": Break(
        _NUMBA, 'trip.notes["store_fault"] = f"saving raised {error_type(call.error)}"', "pass"
    ),
    "a file in place of the store": Break(_NUMBA, "trip.set(semconv.STORE_STORED, False)", "pass"),
    "an artifact that cannot be loaded": _NO_ERROR,
    "the attributes of a compiled trip": Break(
        _NUMBA, 'trip.set(semconv.TARGET, f"cpu:{target.cpu}")', "pass"
    ),
    "the attributes of a loaded trip": Break(
        _NUMBA,
        "trip.set(semconv.DEVICE_LOADED, True)",
        "trip.set(semconv.DEVICE_LOADED, True); trip.set(semconv.WORLD_SIZE, 1)",
    ),
    "level off says nothing": Break(_TRIP, "if state.level is RecordLevel.OFF or not", "if not"),
    "level basic says no text of a kernel": Break(
        _TRIP, "if self.level is RecordLevel.FULL:\n            try:", "if True:\n            try:"
    ),
    "level full says the texts": Break(
        _TRIP,
        "event = self.error if self.error_type is not None and self.level is RecordLevel.FULL else None",
        "event = None",
    ),
    "the duration is measured once a trip": Break(
        _SPANS,
        "if self._measurements is not None and trip.abandoned is None:",
        "if self._measurements is not None:",
    ),
    "a span that is not recorded costs no sink its trip": Break(
        _TRIP,
        "        for sink in state.sinks:\n            try:\n                sink.finished",
        "        for sink in state.sinks if self.spans[0].is_recording() else ():\n"
        "            try:\n                sink.finished",
    ),
    "the api alone is enough": Break(
        _SPANS, "if context == INVALID_SPAN_CONTEXT or not context.is_valid:", "if False:"
    ),
    "a record from its span is the one that was emitted": _LATE,
    "a record from its span is the one that was emitted at basic": _LATE,
    "a new kernel is compiled": Break(_SPANS, 'f"compile {trip.kernel}"', 'f"{trip.kernel}"'),
    "a trip starts before it ends": Break(_TRIP, "sink.started(trip)", "pass"),
    "a hit in memory is no trip": _ON_LAUNCH,
    "a launch calls as much python as without us": _ON_LAUNCH,
    "nothing on the launch path differs": Break(
        "otel_kernel/pending.py", "        _restore_class(self)\n", "", "triton"
    ),
    "a stored kernel is loaded in a new process": Break(_NUMBA, 'trip.notes["loaded"] = True', "pass"),
    "a kernel that is not stored is compiled in every process": Break(
        _NUMBA, '_say_no_key(trip, "disabled")', '_say_no_key(trip, "bypassed")'
    ),
    "a suppressed call is no trip": Break(_TRIP, " or not is_instrumentation_enabled()", ""),
}
"""By the names of the cases in `support.json`."""


def fails(case: str, broken: Break) -> bool:
    """Whether a case fails once the code is broken."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, root / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, root / part)
        shutil.rmtree(root / "otel_kernel" / "instrumentors")
        shutil.copytree(ROOT / "instrumentors", root / "instrumentors")
        (root / "otel_kernel" / "instrumentors").symlink_to("../instrumentors")
        broken.make(root)
        name = re.sub(" ", "_", case)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"),
                *("tests/conformance", "-k", f"test_{name} and {broken.runtime}"),
            ],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{case}: pytest could not run\n{done.stdout}{done.stderr}")
    return done.returncode == 1


def main() -> int:
    """Break and run, and return the exit code."""
    chosen = [case for case in BREAKS if not sys.argv[1:] or any(part in case for part in sys.argv[1:])]
    passed = 0
    for case in chosen:
        failed = fails(case, BREAKS[case])
        passed += not failed
        print(f"{'fails' if failed else 'PASSES ALL THE SAME'}: {case} ({BREAKS[case].file})", flush=True)
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main())
