"""What an instrumentor does with its table of points."""

from __future__ import annotations

import importlib
import inspect
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from acme_instrumentor import AcmeInstrumentor, compile_point, find_point, instrumentor
from checks import ends, messages
from telemetry import CollectingSink, Telemetry

import otel_kernel
from otel_kernel import pipeline
from otel_kernel.instrumentor import KernelInstrumentor
from otel_kernel.patching import Point
from otel_kernel.records import RecordLevel
from otel_kernel.shapes import Call, probe

ROOT = Path(otel_kernel.__file__).parents[1]

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def read_nothing(_call: Call, _trip: Any) -> Generator[None, None, None]:
    yield


def silent_point(name: str, module: str = "acme.compiler") -> Point:
    return Point(module, name, probe(read_nothing))


def static(module: Any, name: str) -> Any:
    """Return what stands at a dotted name, descriptors unbound."""
    *path, attribute = name.split(".")
    holder = module
    for part in path:
        holder = getattr(holder, part)
    return inspect.getattr_static(holder, attribute)


def compiles(acme: Any, telemetry: Telemetry) -> int:
    """Return the number of trips of one compile, and check that it works."""
    telemetry.trips.clear()

    assert 7 == acme.Compiler().compile("k", lambda: 7).value

    return len(telemetry.trips)


# On and off.


@pytest.mark.usefixtures("acme_path")
def test_instrumenting_imports_nothing_and_the_import_is_instrumented(telemetry: Telemetry) -> None:
    instrumentor().instrument()

    assert "acme" not in sys.modules
    assert 1 == compiles(importlib.import_module("acme"), telemetry)


def test_an_imported_runtime_is_instrumented_at_once(acme: Any, telemetry: Telemetry) -> None:
    instrumentor().instrument()

    assert 1 == compiles(acme, telemetry)


def test_second_call_patches_nothing_and_merges_its_options(
    acme: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    made = instrumentor()
    made.instrument(inline_limit=5)
    first = static(acme, "compiler.Compiler.compile")
    made.instrument(level="full")

    assert static(acme, "compiler.Compiler.compile") is first
    assert (RecordLevel.FULL, 5) == (pipeline.current().level, pipeline.current().options.inline_limit)
    assert 1 == compiles(acme, telemetry)
    assert [] == messages(caplog)


def test_second_call_merges_its_provider(acme: Any, telemetry: Telemetry) -> None:
    other = Telemetry(CollectingSink())
    made = instrumentor()
    made.instrument()
    made.instrument(tracer_provider=other.tracer_provider)
    acme.Compiler().compile("k")
    other.close()

    assert (0, 1) == (len(telemetry.spans), len(other.spans))


def test_two_copies_of_an_instrumentor_make_one_trip(acme: Any, telemetry: Telemetry) -> None:
    original = static(acme, "compiler.Compiler.compile")
    one, other = instrumentor(), instrumentor()
    one.instrument()
    other.instrument()

    assert one is not other
    assert 1 == compiles(acme, telemetry)

    one.uninstrument()
    other.uninstrument()

    assert static(acme, "compiler.Compiler.compile") is original
    assert 0 == compiles(acme, telemetry)


@pytest.mark.parametrize("before_import", [True, False])
@pytest.mark.parametrize("on_at_the_end", [True, False])
@pytest.mark.usefixtures("acme_path")
def test_three_cycles_leave_one_wrapper_or_none(
    telemetry: Telemetry, before_import: bool, on_at_the_end: bool
) -> None:
    acme: Any = None if before_import else importlib.import_module("acme")
    made = instrumentor()
    for _ in range(3):
        made.instrument()
        made.uninstrument()
    if on_at_the_end:
        made.instrument()
    acme = importlib.import_module("acme")

    assert int(on_at_the_end) == compiles(acme, telemetry)

    found = static(acme, "compiler.Compiler.compile")

    assert on_at_the_end == hasattr(found, "__wrapped__")
    assert not hasattr(getattr(found, "__wrapped__", None), "__wrapped__")


NAMES = ["compiler.Compiler.compile", "compiler.Compiler.link", "compiler.Compiler.load", "compiler.build"]


def test_every_point_is_given_back_as_the_very_same_object(acme: Any) -> None:
    names = [*NAMES, "compiler.store.find"]
    originals = [static(acme, name) for name in names]
    points = [silent_point(name.removeprefix("compiler.")) for name in NAMES]
    made = instrumentor(*points, find_point())
    made.instrument()

    assert all(static(acme, name) is not original for name, original in zip(names, originals, strict=True))

    made.uninstrument()

    assert [] == [
        name for name, original in zip(names, originals, strict=True) if static(acme, name) is not original
    ]


@pytest.mark.usefixtures("acme_path")
def test_taking_it_back_imports_nothing() -> None:
    made = instrumentor()
    made.instrument()
    made.uninstrument()

    assert "acme" not in sys.modules


def test_point_in_a_module_that_comes_later_waits_for_it(
    acme_path: Path, acme: Any, telemetry: Telemetry
) -> None:
    (acme_path / "acme" / "late.py").write_text("def probe(): return 5\n")
    importlib.invalidate_caches()
    made = instrumentor(compile_point(), silent_point("probe", "acme.late"))
    made.instrument()

    assert "acme.late" not in sys.modules
    assert {"patched": 1, "missing": 0} == made.state_of_points()

    late: Any = importlib.import_module("acme.late")

    assert {"patched": 2, "missing": 0} == made.state_of_points()
    assert 5 == late.probe()
    assert 1 == compiles(acme, telemetry)


def test_importing_an_instrumentor_imports_no_runtime() -> None:
    script = (
        "import sys; from otel_kernel.boot import RUNTIMES; from importlib import import_module\n"
        "for target in RUNTIMES.values(): import_module(target.partition(':')[0])\n"
        "print(sorted(sys.modules.keys() & RUNTIMES.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )

    assert "[]\n" == done.stdout


# Points that are not there.

MISSING = {
    "function": (find_point(name="absent"), "acme.store.absent does not exist"),
    "class": (compile_point(name="Absent.compile"), "acme.compiler.Absent.compile does not exist"),
    "method": (compile_point(name="Compiler.absent"), "acme.compiler.Compiler.absent does not exist"),
    "module": (silent_point("probe", "acme.moved"), "acme.moved.probe does not exist"),
    "package": (silent_point("probe", "acme.moved.deep"), "acme.moved.deep.probe does not exist"),
    "module in a module": (silent_point("f", "acme.store.deep"), "acme.store.deep.f does not exist"),
    "parameter": (
        compile_point(name="Compiler.load", parameters=("name", "target")),
        "acme.compiler.Compiler.load has no parameter target; it takes (cls, name)",
    ),
}


@pytest.mark.parametrize("before_import", [True, False])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("what", MISSING)
@pytest.mark.usefixtures("acme_path")
def test_missing_point_leaves_the_runtime_whole_with_one_warning(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture, what: str, last: bool, before_import: bool
) -> None:
    missing, why = MISSING[what]
    points = [compile_point(), find_point(), missing] if last else [missing, find_point(), compile_point()]
    made = instrumentor(*points)
    if not before_import:
        importlib.import_module("acme")
    made.instrument()
    acme: Any = importlib.import_module("acme")

    assert [f"acme 1.2 is not instrumented: {why}"] == messages(caplog)
    assert 0 == compiles(acme, telemetry)
    assert not hasattr(static(acme, "compiler.Compiler.compile"), "__wrapped__")
    assert not hasattr(static(acme, "compiler.store.find"), "__wrapped__")
    assert {"refused": 1} == made.state_of_points()

    made.instrument()
    made.uninstrument()

    assert 1 == len(messages(caplog))


def test_several_missing_points_are_one_warning(
    acme: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    gone = [silent_point(name, f"acme.{module}") for module in ("moved", "gone") for name in ("a", "b")]
    instrumentor(*gone, find_point(name="absent")).instrument()

    assert ["acme 1.2 is not instrumented: acme.moved.a does not exist"] == messages(caplog)
    assert 0 == compiles(acme, telemetry)


@pytest.mark.parametrize(
    "missing",
    [
        find_point(name="absent", optional=True),
        Point("acme.moved", "probe", probe(read_nothing), optional=True),
    ],
    ids=str,
)
def test_runtime_without_an_optional_point_is_instrumented_in_part(
    acme: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture, missing: Point
) -> None:
    caplog.set_level(logging.INFO)
    made = instrumentor(missing, compile_point())
    made.instrument()

    assert 1 == compiles(acme, telemetry)
    assert {"patched": 1, "missing": 1} == made.state_of_points()
    assert [] == messages(caplog)
    assert [f"acme 1.2 is instrumented in part: {missing} does not exist"] == caplog.messages


def test_module_that_comes_after_a_refusal_is_left_alone(
    acme_path: Path, acme: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    (acme_path / "acme" / "late.py").write_text("def probe(): return 5\n")
    importlib.invalidate_caches()
    instrumentor(silent_point("probe", "acme.late"), find_point(name="absent")).instrument()
    late: Any = importlib.import_module("acme.late")

    assert not hasattr(late.probe, "__wrapped__")
    assert 1 == len(messages(caplog))
    assert 0 == compiles(acme, telemetry)


# Versions.


@pytest.mark.parametrize(
    ("requires", "why"),
    [
        ("acme-compiler >= 2, < 3", "acme 1.2 is not instrumented: version 1.2 is not among the supported "),
        ("acme-absent >= 1", "acme is not instrumented: no distribution named acme-absent is installed"),
    ],
)
def test_unsupported_version_is_one_line(
    acme: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture, requires: str, why: str
) -> None:
    made = instrumentor(requires=requires)
    made.instrument()

    assert 1 == len(messages(caplog))
    assert messages(caplog)[0].startswith(why)
    assert 0 == compiles(acme, telemetry)
    assert {"refused": 1} == made.state_of_points()


@pytest.mark.usefixtures("acme_path")
def test_unsupported_version_is_not_looked_at_before_it_is_imported(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    instrumentor(requires="acme-compiler >= 2").instrument()

    assert [] == messages(caplog)
    assert 0 == compiles(importlib.import_module("acme"), telemetry)
    assert 1 == len(messages(caplog))


def test_version_of_a_runtime_under_a_vendors_name_is_read_from_the_module(
    acme: Any, telemetry: Telemetry
) -> None:
    acme.__version__ = "1.5+vendor"
    instrumentor(requires="acme-absent >= 1, < 2").instrument()

    assert 1 == compiles(acme, telemetry)


def test_beta_of_a_supported_version_is_supported(acme_path: Path, acme: Any, telemetry: Telemetry) -> None:
    old = acme_path / "acme_compiler-1.2.dist-info"
    old.rename(acme_path / "acme_compiler-1.9b1.dist-info")
    metadata = acme_path / "acme_compiler-1.9b1.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("Version: 1.2", "Version: 1.9b1"))
    importlib.invalidate_caches()
    instrumentor().instrument()

    assert 1 == compiles(acme, telemetry)


def test_states_of_the_points(acme: Any) -> None:
    made = instrumentor()

    assert {} == made.state_of_points()

    made.instrument()

    assert {"patched": 2, "missing": 0} == made.state_of_points()

    made.uninstrument()

    assert {} == made.state_of_points()
    assert acme is not None


# Our own faults.


def _broken_table(error: Exception) -> KernelInstrumentor:
    def points(_self: KernelInstrumentor) -> tuple[Point, ...]:
        raise error

    made: Any = type("Broken", (AcmeInstrumentor,), {"points": points, "_instance": None})()
    return made  # type: ignore[no-any-return] # made at run time


@pytest.mark.parametrize("error", [ImportError("no name 'x'"), AttributeError("no 'x'")], ids=repr)
def test_readers_that_import_what_this_version_has_not_are_a_missing_point(
    acme: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    _broken_table(error).instrument()

    assert [f"acme 1.2 is not instrumented: {error}"] == messages(caplog)
    assert 0 == compiles(acme, telemetry)


@pytest.mark.faults_logged
@pytest.mark.parametrize("before_import", [True, False])
@pytest.mark.usefixtures("acme_path")
def test_fault_in_a_table_is_logged_and_breaks_no_import(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture, before_import: bool
) -> None:
    if not before_import:
        importlib.import_module("acme")
    _broken_table(LookupError("ours")).instrument()

    assert 0 == compiles(importlib.import_module("acme"), telemetry)
    assert 1 == len(messages(caplog))
    assert "instrumenting acme at its import failed in otel-kernel (LookupError" in messages(caplog)[0]


@pytest.mark.faults_logged
def test_fault_while_patching_leaves_the_runtime_whole(
    acme: Any, telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    def broken_shape(*_args: Any) -> Any:
        raise LookupError("ours")

    made = instrumentor(compile_point(), Point("acme.compiler", "build", broken_shape))
    made.instrument()

    assert not hasattr(static(acme, "compiler.Compiler.compile"), "__wrapped__")
    assert 0 == compiles(acme, telemetry)
    assert 1 == len(messages(caplog))
    assert {"refused": 1} == made.state_of_points()


@pytest.mark.faults_logged
@pytest.mark.parametrize(
    "options",
    [
        {"level": "loud"},
        {"unknown": 1},
        {"inline_limit": "x", "text_files": 5},
        {"tracer_provider": object()},
        {"meter_provider": object()},
        {"recording": "/dev/null/not/a/folder.db"},
        {"skip_dep_check": True, "raise_exception_on_conflict": True},
    ],
    ids=",".join,
)
def test_instrumenting_never_raises(acme: Any, options: dict[str, Any]) -> None:
    made = instrumentor()
    made.instrument(**options)

    assert made.is_instrumented_by_opentelemetry
    assert 7 == acme.Compiler().compile("k", lambda: 7).value


PROGRAM = """
import sys
before = "acme" in sys.modules
import acme
from opentelemetry import trace
inside = []
acme.Compiler().compile("k", lambda: inside.append(trace.get_current_span().is_recording()))
print(before, inside)
"""

ENTRY_POINTS = """
[opentelemetry_instrumentor]
kernel_acme_a = broken_instrumentor:BrokenInstrumentor
kernel_acme_b = acme_instrumentor:AcmeInstrumentor
"""

BROKEN = """
from acme_instrumentor import AcmeInstrumentor

class BrokenInstrumentor(AcmeInstrumentor):
    runtime = "broken"

    def points(self):
        raise RuntimeError("ours")
"""


def test_faulty_instrumentor_stops_no_other_and_no_runtime_is_imported_at_start(acme_path: Path) -> None:
    command = shutil.which("opentelemetry-instrument", path=str(Path(sys.executable).parent))
    assert command is not None
    dist_info = acme_path / "acme_tracing-1.0.dist-info"
    dist_info.mkdir()
    (dist_info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tracing\nVersion: 1.0\n")
    (dist_info / "entry_points.txt").write_text(ENTRY_POINTS)
    (acme_path / "broken_instrumentor.py").write_text(BROKEN)
    done = subprocess.run(
        [command, sys.executable, "-c", PROGRAM],
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("OTEL_")},
            "PYTHONPATH": os.pathsep.join(map(str, (acme_path, ROOT, ROOT / "tests"))),
            "OTEL_TRACES_EXPORTER": "none",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
        },
        capture_output=True,
        text=True,
        check=True,
    )

    assert "False [True]\n" == done.stdout
    assert 1 == done.stderr.count("instrumenting acme at its import failed in otel-kernel (RuntimeError")
    assert "Traceback" not in done.stderr
    assert "Failed to auto initialize" not in done.stderr


def test_trips_are_told_with_the_runtime_as_scope(acme: Any, telemetry: Telemetry) -> None:
    instrumentor().instrument()
    acme.Compiler().compile("k")
    scope = telemetry.spans[0].instrumentation_scope

    assert scope is not None
    assert ("otel_kernel.acme", otel_kernel.__version__) == (scope.name, scope.version)
    assert [("acme.k", "compiled")] == ends(telemetry.trips)
