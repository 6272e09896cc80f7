"""How `torch.utils.cpp_extension` is read: sources of the program's own, built by ninja and imported.

The build and the import are two calls of one function, and one trip, which is held in between. A call that
finds its module built by this process reaches only the second, and is no trip.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator, Iterable
from contextvars import ContextVar
from pathlib import Path

from otel_kernel import semconv
from otel_kernel.instrumentors.torch import keys
from otel_kernel.records import CompilationOutcome
from otel_kernel.shapes import Call
from otel_kernel.trip import Begin, OpenTrip

LAYER = "torch.cpp_extension"

_Stamp = tuple[int, int, int] | None

_built: dict[tuple[str, str], OpenTrip] = {}
"""Trips between build and import, by folder and name."""

_asked: ContextVar[str | None] = ContextVar("otel_kernel_torch_extension", default=None)

_waited: ContextVar[bool] = ContextVar("otel_kernel_torch_waited", default=False)


def read_request(call: Call) -> Generator[None, None, None]:
    """Read `_jit_compile`, which numbers a second library of one name."""
    token = _asked.set(str(call.argument("name")))
    yield
    _asked.reset(token)


def read_build(call: Call) -> Generator[Begin, OpenTrip, None]:
    """Read `_write_ninja_file_and_build_library`, which runs ninja, who may find nothing to do."""
    name, folder = str(call.argument("name")), str(call.argument("build_directory"))
    before = _stamp(folder, name)
    trip = yield Begin(_asked.get() or name, LAYER)
    _read_key(trip, call)
    if trip.error is not None:
        cause = trip.error.__cause__
        status = getattr(cause, "returncode", None)
        if status is not None:
            trip.say_of_error(f"exit code {status}")
        return
    after = _stamp(folder, name)
    trip.outcome = CompilationOutcome.LOADED if before == after else CompilationOutcome.COMPILED
    if trip.outcome is CompilationOutcome.COMPILED:
        trip.set(semconv.STORE_STORED, after is not None)
        if before is not None:
            trip.set(semconv.REASON, "the sources or flags differ from those of the library that was there")
    if after is not None:
        trip.set(semconv.ARTIFACT_SIZE, after[2])
    if not call.argument("is_standalone"):
        trip.held = True
        _built[folder, name] = trip


def read_wait(_call: Call) -> Generator[None, None, None]:
    """Read `FileBaton.wait`: another process builds, and this one will not."""
    yield
    _waited.set(True)


def read_import(call: Call) -> Generator[Begin | OpenTrip, OpenTrip, None]:
    """Read `_import_module_from_library`, the end of the trip."""
    name, folder = str(call.argument("module_name")), str(call.argument("path"))
    held = _built.pop((folder, name), None)
    if held is None and not _waited.get():
        return  # in memory already
    _waited.set(False)
    started = time.perf_counter_ns()
    trip = yield held if held is not None else Begin(_asked.get() or name, LAYER)
    trip.add_stage("load", time.perf_counter_ns() - started)
    if trip.error is not None:
        if trip.outcome is CompilationOutcome.LOADED:
            trip.set(semconv.STORE_REJECTED, type(trip.error).__name__)
        return
    if held is None:
        trip.outcome = CompilationOutcome.LOADED
        trip.set(semconv.KEY_ABSENT_REASON, "unsupported")
    trip.set(semconv.DEVICE_LOADED, True)


def _read_key(trip: OpenTrip, call: Call) -> None:
    """Make a key of what the library is built from; torch's own is salted anew in every process."""
    sources = [str(source) for source in call.argument("sources")]
    folder, name = str(call.argument("build_directory")), str(call.argument("name"))
    texts = [Path(source).read_text(errors="replace") for source in sources]
    flags = {
        part: " ".join(map(str, call.argument(part) or ()))
        for part in ("extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths")
    }
    digest = _digest(texts)
    trip.set_source("\n".join(texts))
    trip.set_code_digest(digest)
    trip.set(semconv.SPECIALIZATION, " ".join(flags[part] for part in sorted(flags) if flags[part]) or None)
    trip.set(semconv.TARGET, "cuda" if call.argument("with_cuda") else "cpu")
    trip.set(semconv.BUILD, keys.build_name("ninja"))
    trip.set_key(
        build=keys.build_text("cpp_extension"),
        rest="\n".join((name, digest, *(flags[part] for part in sorted(flags)))),
        components={"name": name, "source": digest, **flags},
        entry=name,
    )
    trip.set(semconv.STORE_KIND, "torch.cpp_extension")
    trip.set(semconv.STORE_LOCATION, folder)


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode(errors="replace")).hexdigest()


def _stamp(folder: str, name: str) -> _Stamp:
    """Return what changes when the library is written anew, or None where there is none."""
    for suffix in (".so", ""):
        try:
            status = Path(folder, name + suffix).stat()
        except OSError:
            continue
        return status.st_mtime_ns, status.st_ino, status.st_size
    return None
