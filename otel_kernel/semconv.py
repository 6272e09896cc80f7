"""Every name that otel-kernel gives to an attribute, a metric or an enum value.

A new name starts here: README's and docs' tables are made from these definitions, and the mapping from
span to trip checks types and values against them. Names are flat scalars under `compute.kernel.`; a name
is never both a leaf and a prefix of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from otel_kernel.records import Abandoned, CompilationOutcome

NAMESPACE: Final = "compute.kernel."
"""Prefix of our own names. Bare `kernel.` means the operating system's, and `gpu.` fits CPU compilers badly."""

SCOPE_PREFIX: Final = "otel_kernel."
"""Prefix of the instrumentation scope; the runtime follows."""

RECORD_FORMAT: Final = 1
"""Value of `compute.kernel.record.version`: changes when an old reader could misread a span."""

MAX_FAMILY: Final = 24
"""Members of one attribute family on a span; the rest goes into its `_other` attribute."""

Requirement = Literal["required", "conditional", "recommended", "opt-in"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """Definition of one attribute, or of a family of attributes that share a prefix."""

    name: str
    type: type[str] | type[int] | type[bool]
    requirement: Requirement
    when: str
    brief: str
    example: str
    unit: str = ""
    values: tuple[str, ...] = ()
    family: bool = False


@dataclass(frozen=True, slots=True)
class Metric:
    """Definition of one metric."""

    name: str
    instrument: Literal["histogram", "gauge"]
    unit: str
    attributes: tuple[str, ...]
    brief: str


@dataclass(frozen=True, slots=True)
class Event:
    """Definition of one log event."""

    name: str
    attributes: tuple[str, ...]
    when: str
    brief: str


ATTRIBUTES: Final[dict[str, Attribute]] = {}
"""All attributes by name, in the order of the tables."""

FAMILIES: Final[dict[str, Attribute]] = {}
"""The families by their prefix, which ends in a dot."""

RECORD_ATTRIBUTES: Final[dict[str, Attribute]] = {}
"""What only the spans of other records than trips have, by name."""

METRICS: Final[dict[str, Metric]] = {}
"""All metrics by name."""

EVENTS: Final[dict[str, Event]] = {}
"""All log events by name."""


def _define(
    name: str,
    kind: type[str] | type[int] | type[bool],
    requirement: Requirement,
    when: str,
    brief: str,
    example: str,
    *,
    unit: str = "",
    values: tuple[str, ...] = (),
) -> str:
    ATTRIBUTES[name] = Attribute(name, kind, requirement, when, brief, example, unit, values)
    return name


def _define_of_record(
    name: str,
    kind: type[str] | type[int] | type[bool],
    requirement: Requirement,
    when: str,
    brief: str,
    example: str,
    *,
    unit: str = "",
) -> str:
    RECORD_ATTRIBUTES[name] = Attribute(name, kind, requirement, when, brief, example, unit)
    return name


def _define_family(
    prefix: str, kind: type[str] | type[int], when: str, brief: str, example: str, *, unit: str = ""
) -> str:
    FAMILIES[prefix] = Attribute(
        f"{prefix}<name>", kind, "recommended", when, brief, example, unit, family=True
    )
    return prefix


def _define_metric(
    name: str, instrument: Literal["histogram", "gauge"], unit: str, attributes: tuple[str, ...], brief: str
) -> str:
    METRICS[name] = Metric(name, instrument, unit, attributes, brief)
    return name


def _define_event(name: str, attributes: tuple[str, ...], when: str, brief: str) -> str:
    EVENTS[name] = Event(name, attributes, when, brief)
    return name


def definition(name: str) -> Attribute | None:
    """Return the definition that `name` falls under, or None for a name that is not ours."""
    found = ATTRIBUTES.get(name)
    if found is None and name.startswith(NAMESPACE):
        for prefix, family in FAMILIES.items():
            if name.startswith(prefix):
                return family
    return found


# What the trip is. Set at start, where samplers see it, and again at the end.
KERNEL_NAME: Final = _define(
    "compute.kernel.name",
    str,
    "required",
    "always",
    "The kernel's type: `module.qualname` or the runtime's own readable name; never a hash.",
    "shop.pricing.discount",
)
RUNTIME: Final = _define(
    "compute.kernel.runtime", str, "required", "always", "The runtime that compiles.", "numba"
)
LAYER: Final = _define(
    "compute.kernel.layer",
    str,
    "required",
    "always",
    "Which store of the runtime the trip belongs to; never sum over layers.",
    "torch.inductor.graph",
)
ROLE: Final = _define(
    "compute.kernel.role",
    str,
    "required",
    "always",
    "What the span stands for; readers take `trip` and join `load` by its link; `record` is one of another kind.",
    "trip",
    values=("trip", "load", "parent", "stage", "record", "trial"),
)
SESSION_ID: Final = _define(
    "compute.kernel.session.id",
    str,
    "required",
    "always",
    "The process, 32 hex digits, drawn anew after a fork.",
    "0f0e0d0c0b0a09080706050403020100",
)
SESSION_RUN: Final = _define(
    "compute.kernel.session.run",
    str,
    "required",
    "always",
    "One start of a program with all its processes, 32 hex digits.",
    "00112233445566778899aabbccddeeff",
)
SESSION_SEQ: Final = _define(
    "compute.kernel.session.seq",
    int,
    "required",
    "always",
    "Counts the trips of a session from 0; with `session.id` the identity of a trip.",
    "12",
)
SESSION_PARENT_SEQ: Final = _define(
    "compute.kernel.session.parent_seq",
    int,
    "conditional",
    "inside another trip",
    "`session.seq` of the trip of the same session inside which this one ran.",
    "11",
)

# The record.
RECORD_VERSION: Final = _define(
    "compute.kernel.record.version",
    int,
    "required",
    "at the end",
    "Version of the mapping between trip and span.",
    "1",
)
RECORD_SIZE: Final = _define(
    "compute.kernel.record.size",
    int,
    "required",
    "at the end",
    "Number of these attributes on the span, so that a reader sees what a limit dropped.",
    "31",
)
RECORD_LENGTH: Final = _define(
    "compute.kernel.record.length",
    int,
    "required",
    "at the end",
    "Characters of all these attributes that are strings, ir.text and source.text left out, so that a reader sees what a limit cut.",
    "1204",
    unit="{character}",
)
RECORD_FIELD: Final = _define_family(
    "compute.kernel.record.field.",
    str,
    "a record read from elsewhere has it",
    "A field of the record that this version does not know, as JSON.",
    "priority=3",
)
KEY_ID: Final = _define(
    "compute.kernel.key.id",
    str,
    "conditional",
    "a record with a key",
    "Tells two instances of one kernel type apart, 32 hex digits.",
    "5f1c0e6a0b9d4d0e8a8d3c5b7a9f1e2d",
)
KEY_BUILD_ID: Final = _define(
    "compute.kernel.key.build_id",
    str,
    "conditional",
    "a record with a key",
    "Names the compiler and the build, 32 hex digits.",
    "c0ffee00c0ffee00c0ffee00c0ffee00",
)
KEY_ABSENT_REASON: Final = _define(
    "compute.kernel.key.absent_reason",
    str,
    "conditional",
    "a record without a key",
    "Why there is no key.",
    "disabled",
    values=("disabled", "bypassed", "unsupported"),
)
KEY_COMPONENT: Final = _define_family(
    "compute.kernel.key.component.",
    str,
    f"with a key; at most {MAX_FAMILY}",
    "One part of the key, its short value or a digest, so that two keys can be compared.",
    "signature=(float64,)",
)
KEY_COMPONENT_OTHER: Final = _define(
    "compute.kernel.key.component_other",
    str,
    "conditional",
    f"more than {MAX_FAMILY} components",
    "The remaining components as a JSON object.",
    '{"flag": "1"}',
)

# How the trip ended.
OUTCOME: Final = _define(
    "compute.kernel.compilation.outcome",
    str,
    "conditional",
    "on a record: its presence marks one",
    "How the artifact was obtained.",
    "compiled",
    values=tuple(o.value for o in CompilationOutcome),
)
DURATION_NS: Final = _define(
    "compute.kernel.compilation.duration_ns",
    int,
    "required",
    "at the end",
    "Wall time of this trip, exact where a backend keeps microseconds; not to be summed over threads.",
    "1200345678",
    unit="ns",
)
OUTCOME_FROM: Final = _define(
    "compute.kernel.compilation.outcome_from",
    str,
    "conditional",
    "on a record",
    "Who said so: the runtime here, its worker process, or an inference.",
    "runtime",
    values=("runtime", "worker", "inferred"),
)
ABANDONED: Final = _define(
    "compute.kernel.compilation.abandoned",
    str,
    "conditional",
    "control flow, no outcome and no error",
    "Why the trip ended without either.",
    "nested",
    values=tuple(a.value for a in Abandoned),
)
COMPILE_ID: Final = _define(
    "compute.kernel.compilation.id",
    str,
    "conditional",
    "the runtime has one",
    "The runtime's own number of this round of compiling, which joins its logs: `frame/recompile` for Dynamo.",
    "0/1",
)
REASON: Final = _define(
    "compute.kernel.compilation.reason",
    str,
    "conditional",
    "the runtime says so",
    "Why it compiled or recompiled.",
    "dtype of argument x changed",
)
ORIGINAL_NS: Final = _define(
    "compute.kernel.compilation.original_ns",
    int,
    "conditional",
    "loaded, the artifact remembers",
    "What the artifact remembers of its compile time.",
    "880000000",
    unit="ns",
)
STAGE: Final = _define_family(
    "compute.kernel.stage.",
    int,
    f"the runtime tells; at most {MAX_FAMILY}",
    "Time of one stage of this trip, nested trips included.",
    "native_lowering=197000000",
    unit="ns",
)
STAGE_OTHER: Final = _define(
    "compute.kernel.stage_other",
    int,
    "conditional",
    f"more than {MAX_FAMILY} stages",
    "Sum of the remaining, shortest stages.",
    "120000",
    unit="ns",
)

# Texts. The digest and the size travel at every level, the text at level full only.
IR_TEXT: Final = _define(
    "compute.kernel.ir.text",
    str,
    "opt-in",
    "level full, not loaded, up to the inline limit",
    "The kernel as its framework defined it.",
    "label 0: ...",
)
IR_SHA256: Final = _define(
    "compute.kernel.ir.sha256",
    str,
    "conditional",
    "with an ir",
    "sha256 of the whole text in UTF-8, 64 hex digits.",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
)
IR_SIZE: Final = _define(
    "compute.kernel.ir.size",
    int,
    "conditional",
    "with an ir",
    "Bytes of the whole text in UTF-8.",
    "3280",
    unit="By",
)
IR_LOCATION: Final = _define(
    "compute.kernel.ir.location",
    str,
    "conditional",
    "level full, with an ir",
    "Where the text went: here, into a text file named by its sha256, or nowhere.",
    "inline",
    values=("inline", "file", "none"),
)
SOURCE_TEXT: Final = _define(
    "compute.kernel.source.text",
    str,
    "opt-in",
    "level full, up to the inline limit",
    "What the backend compiled.",
    "define i32 @f ...",
)
SOURCE_SHA256: Final = _define(
    "compute.kernel.source.sha256",
    str,
    "conditional",
    "with a source",
    "sha256 of the whole text in UTF-8, 64 hex digits.",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
)
SOURCE_SIZE: Final = _define(
    "compute.kernel.source.size",
    int,
    "conditional",
    "with a source",
    "Bytes of the whole text in UTF-8.",
    "21772",
    unit="By",
)
SOURCE_LOCATION: Final = _define(
    "compute.kernel.source.location",
    str,
    "conditional",
    "level full, with a source",
    "Where the text went: here, into a text file named by its sha256, or nowhere.",
    "inline",
    values=("inline", "file", "none"),
)

# The store.
STORE_KIND: Final = _define(
    "compute.kernel.store.kind", str, "conditional", "there is a store", "Which kind of store.", "numba.file"
)
STORE_LOCATION: Final = _define(
    "compute.kernel.store.location",
    str,
    "conditional",
    "there is a store",
    "Where the store is.",
    "/srv/app/__pycache__",
)
STORE_ENTRY: Final = _define(
    "compute.kernel.store.entry",
    str,
    "conditional",
    "there is an entry",
    "The runtime's own key text.",
    "m1.inner-4.py311.1.nbc",
)
STORE_LOOKUP: Final = _define(
    "compute.kernel.store.lookup",
    str,
    "conditional",
    "the runtime tells more than the outcome does",
    "What the store was asked and said; a guard_miss is an entry under this key that holds for other inputs.",
    "guard_miss",
    values=("hit", "miss", "guard_miss", "bypass", "disabled"),
)
STORE_STORED: Final = _define(
    "compute.kernel.store.stored",
    bool,
    "conditional",
    "there is a store, not loaded",
    "Whether the store took the artifact.",
    "true",
)
STORE_REASON: Final = _define(
    "compute.kernel.store.reason",
    str,
    "conditional",
    "the store did not take it",
    "Why not.",
    "cannot cache a function with lifted loops",
)
STORE_REJECTED: Final = _define(
    "compute.kernel.store.rejected",
    str,
    "conditional",
    "an entry was damaged",
    "What was wrong with the entry that was found.",
    "UnpicklingError",
)

# What it was compiled for and into.
TARGET: Final = _define(
    "compute.kernel.target", str, "recommended", "known", "The hardware compiled for.", "cuda:90"
)
DEVICE: Final = _define(
    "compute.kernel.device", str, "recommended", "known", "The device loaded on.", "cuda:0"
)
DEVICE_LOADED: Final = _define(
    "compute.kernel.device_loaded",
    bool,
    "required",
    "on a record",
    "Whether the trip holds the load on the device.",
    "true",
)
ARTIFACT_SIZE: Final = _define(
    "compute.kernel.artifact.size",
    int,
    "recommended",
    "known without work",
    "Size of the artifact.",
    "22025",
    unit="By",
)
SPECIALIZATION: Final = _define(
    "compute.kernel.specialization",
    str,
    "recommended",
    "known",
    "Signature, constants and shapes, readable.",
    "(array(float64, 1d, C),)",
)
BUILD: Final = _define(
    "compute.kernel.build",
    str,
    "recommended",
    "known",
    "The compiler's identity, readable.",
    "numba 0.68.1; llvmlite 0.50.0; LLVM 22.1.0",
)
IDENTITY: Final = _define(
    "compute.kernel.identity",
    str,
    "recommended",
    "the runtime has a code digest",
    "blake2b-128 of kernel, code digest, specialization and target, 32 hex digits: the same for every outcome and host; compare by this, never by key.",
    "d41d8cd98f00b204e9800998ecf8427e",
)
MEMBERS_NAMES: Final = _define(
    "compute.kernel.members.names",
    str,
    "conditional",
    "an artifact of several kernels",
    "The kernels of a module, a JSON array of at most 64.",
    '["add", "mul"]',
)
MEMBERS_COUNT: Final = _define(
    "compute.kernel.members.count",
    int,
    "conditional",
    "an artifact of several kernels",
    "Number of kernels of a module.",
    "2",
    unit="{kernel}",
)
INTERNAL: Final = _define(
    "compute.kernel.internal",
    bool,
    "conditional",
    "true on a runtime's own function",
    "The kernel is part of the runtime's library; reports fold it.",
    "true",
)

# Where and when it ran.
PHASE: Final = _define(
    "compute.kernel.phase",
    str,
    "recommended",
    "a phase is set",
    "Phase of the program: `startup`, `serving`, or a name of the user's.",
    "serving",
)
RANK: Final = _define(
    "compute.kernel.rank",
    int,
    "conditional",
    "the runtime's process group or the launcher's environment tells",
    "Rank of the process.",
    "3",
)
WORLD_SIZE: Final = _define(
    "compute.kernel.world_size",
    int,
    "conditional",
    "the runtime's process group or the launcher's environment tells",
    "Number of ranks.",
    "8",
)

# OpenTelemetry's own names, copied: the semconv package that defines them is unstable.
CODE_FUNCTION_NAME: Final = _define(
    "code.function.name",
    str,
    "recommended",
    "known",
    "The kernel's Python function.",
    "shop.pricing.discount",
)
CODE_FILE_PATH: Final = _define(
    "code.file.path",
    str,
    "recommended",
    "known",
    "File of the kernel's Python function.",
    "/srv/app/shop/pricing.py",
)
CODE_LINE_NUMBER: Final = _define(
    "code.line.number", int, "recommended", "known", "First line of the kernel's Python function.", "41"
)
ERROR_TYPE: Final = _define(
    "error.type",
    str,
    "conditional",
    "failed",
    "Class of the exception that left the trip.",
    "numba.core.errors.TypingError",
)
PROCESS_PID: Final = _define("process.pid", int, "recommended", "known", "The process.", "4711")
THREAD_ID: Final = _define(
    "thread.id",
    int,
    "recommended",
    "known",
    "The thread, as Python's `threading.get_native_id` gives it.",
    "4712",
)

# Records of other kinds than compilations: of tunes, of batches of kernels, of marks and of memory.
RECORD_KIND: Final = _define_of_record(
    "compute.kernel.record.kind",
    str,
    "required",
    "always",
    "The kind of the record, as CubeCL names it: `autotune`, `compilation_batch`, `marks`, `memory`, or another.",
    "autotune",
)
RECORD_WALL_NS: Final = _define_of_record(
    "compute.kernel.record.wall_ns",
    int,
    "required",
    "always",
    "Wall time, exact where a backend keeps microseconds; 0 for a moment.",
    "1200345678",
    unit="ns",
)
RECORD_BODY: Final = _define_of_record(
    "compute.kernel.record.body",
    str,
    "conditional",
    "a kind that this version does not know",
    "All of the record, as JSON.",
    '{"label": "warm-up"}',
)
SESSION_LABEL: Final = _define_of_record(
    "compute.kernel.session.label",
    str,
    "conditional",
    "on the resource, where the session has one",
    "What the program says it is doing.",
    "models build qwen3-8b",
)
TUNE_TABLE: Final = _define_of_record(
    "compute.kernel.tune.table",
    str,
    "conditional",
    "a tune",
    "The namespace that the answer is stored in.",
    "autotune/0.12.0/layout-v1/vulkan/matmul",
)
TUNE_KEY: Final = _define_of_record(
    "compute.kernel.tune.key", str, "conditional", "a tune", "What was tuned for, as JSON.", '{"rows": 64}'
)
TUNE_CHECKSUM: Final = _define_of_record(
    "compute.kernel.tune.checksum", str, "conditional", "a tune", "Of the list of candidates.", "9c1f"
)
TUNE_WINNER: Final = _define_of_record(
    "compute.kernel.tune.winner",
    int,
    "conditional",
    "a tune",
    "Index of the candidate that the key runs from now on.",
    "1",
)
TUNE_TRIALS: Final = _define_of_record(
    "compute.kernel.tune.trials",
    str,
    "conditional",
    "a tune",
    "The candidates that ran, in that order, each with its ns, as JSON.",
    '[["tiled", 5100000]]',
)
TUNE_PLAN: Final = _define_of_record(
    "compute.kernel.tune.plan",
    str,
    "conditional",
    "a tune with a plan",
    "All candidates in the order in which they are released: name, index, batch, and groups with their priorities, as JSON.",
    '[["tiled", 0, 0, []]]',
)
TUNE_SHORT_CIRCUIT: Final = _define_of_record(
    "compute.kernel.tune.short_circuit",
    str,
    "conditional",
    "a tune that ended early",
    "The candidate that met the time limit.",
    "tiled",
)
TUNE_DRY_RUN: Final = _define_of_record(
    "compute.kernel.tune.dry_run",
    bool,
    "conditional",
    "a tune",
    "Whether launches were discarded: they compile and do not run.",
    "false",
)
TUNE_STORED: Final = _define_of_record(
    "compute.kernel.tune.stored", bool, "conditional", "a tune", "Whether the table took the answer.", "true"
)
BATCH_KERNELS: Final = _define_of_record(
    "compute.kernel.batch.kernels",
    int,
    "conditional",
    "a batch of kernels",
    "How many were asked for together, failures included.",
    "12",
    unit="{kernel}",
)
BATCH_THREADS: Final = _define_of_record(
    "compute.kernel.batch.threads",
    int,
    "conditional",
    "a batch of kernels",
    "How many threads compiled at once.",
    "4",
    unit="{thread}",
)
MARK_LABEL: Final = _define_of_record(
    "compute.kernel.mark.label",
    str,
    "conditional",
    "a mark",
    "What the program calls this phase.",
    "load weights",
)
MEMORY_LABEL: Final = _define_of_record(
    "compute.kernel.memory.label",
    str,
    "conditional",
    "a picture of memory",
    "What the program calls this moment.",
    "model loaded",
)
MEMORY_REPORT: Final = _define_of_record(
    "compute.kernel.memory.report",
    str,
    "conditional",
    "a picture of memory",
    "The pools of every stream, as JSON.",
    '{"streams": []}',
)
TRIAL_NAME: Final = _define_of_record(
    "compute.kernel.trial.name", str, "conditional", "the span of a trial", "The candidate.", "tiled"
)
TRIAL_INDEX: Final = _define_of_record(
    "compute.kernel.trial.index",
    int,
    "conditional",
    "the span of a trial",
    "Its place among the trials of its tune, from 0.",
    "0",
)

# Metric attributes that no span carries.
POINTS_STATE: Final = "compute.kernel.instrumentation.state"
"""State of an instrumentor's points: patched, missing or refused."""

DURATION_METRIC: Final = _define_metric(
    "compute.kernel.compilation.duration",
    "histogram",
    "s",
    (RUNTIME, LAYER, OUTCOME, PHASE, STORE_STORED, ERROR_TYPE),
    "Wall time of a trip, abandoned ones left out; never by kernel or key.",
)
DURATION_BUCKETS: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
)
OLDEST_ACTIVE_METRIC: Final = _define_metric(
    "compute.kernel.compilation.oldest_active",
    "gauge",
    "s",
    (),
    "Age of the oldest trip in flight, 0 with none: a hang shows here before it ends.",
)
POINTS_METRIC: Final = _define_metric(
    "compute.kernel.instrumentation.points",
    "gauge",
    "{point}",
    (RUNTIME, POINTS_STATE),
    "Points of an instrumentor by state, once its runtime is imported: `patched`, `missing`, or one `refused` where the runtime is left alone; so that silence does not look like health.",
)

START_EVENT: Final = _define_event(
    "compute.kernel.compilation.start",
    (
        KERNEL_NAME,
        RUNTIME,
        LAYER,
        ROLE,
        SESSION_ID,
        SESSION_RUN,
        SESSION_SEQ,
        PROCESS_PID,
        THREAD_ID,
        PHASE,
        RANK,
        WORLD_SIZE,
    ),
    "with the option `start_events`, at the start of every trip that runs in no other",
    "A kernel has begun to compile or load: a hang shows here although its span never ends.",
)
