"""The table of changes: what is done to a program that has run, and what is then said of its kernel.

The programs are in `programs/`. Each is run, changed as told, and run again with the same store and recording.
`docs/explain.md` shows this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Act = Literal["touch", "move the store", "delete the entry", "damage the entry", "edit the library"]


@dataclass(frozen=True)
class Change:
    """Something that changes between two runs of a program."""

    runtime: str
    what: str
    reason: str | None
    """The answer; None where the kernel is loaded as it should be."""
    parts: tuple[str, ...] = ()
    """Parts of the key that must be named."""
    detail: str = ""
    """What must be in the detail."""
    thread: str = ""
    """A public report of this."""
    edit: tuple[str, str] | None = None
    """What to replace in the program, and by what."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables of the environment of the second run."""
    always: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables of both runs."""
    act: Act | None = None
    older: bool = False
    """Whether the first run is on an older version of the runtime."""
    stays_old: bool = False
    """Whether the second one is as well."""
    is_full: bool = False
    """Whether the store is on a disk that is full."""


CHANGES: Final = (
    # Numba
    Change("numba", "nothing", None),
    Change(
        "numba",
        "the body is edited",
        "source",
        ("source_digest", "bytecode"),
        edit=("total += ", "total -= "),
    ),
    Change(
        "numba",
        "a global is edited",
        "source",
        ("source_digest",),
        "a function that it calls",
        edit=("RATE = 1.19", "RATE = 1.07"),
    ),
    Change(
        "numba",
        "a function that it calls is edited",
        "source",
        ("source_digest",),
        "a function that it calls",
        edit=("return value * RATE", "return value + RATE"),
    ),
    Change(
        "numba",
        "a comment is edited",
        "source",
        ("source_digest",),
        "a comment",
        edit=("# the sum with tax", "# the sum of all, with tax"),
    ),
    Change("numba", "another dtype", "specialization", ("signature",), variables={"DTYPE": "float32"}),
    Change(
        "numba", "another number of dimensions", "specialization", ("signature",), variables={"SHAPE": "2x4"}
    ),
    Change("numba", "another size", None, variables={"SHAPE": "16"}),
    Change(
        "numba", "an option that is not in the key", "other_artifact", ("options",), variables={"FAST": "1"}
    ),
    Change(
        "numba",
        "an environment variable that is not in the key",
        "other_artifact",
        ("options",),
        thread="numba/numba#10821",
        variables={"NUMBA_OPT": "0"},
    ),
    Change("numba", "another CPU name", "target", ("cpu",), variables={"NUMBA_CPU_NAME": "generic"}),
    Change("numba", "the file is touched", None, act="touch"),
    Change(
        "numba",
        "the file is touched, with an older Numba",
        "excess",
        ("source_stamp",),
        "time stamp",
        thread="numba/numba#10776",
        act="touch",
        older=True,
        stays_old=True,
    ),
    Change("numba", "the store is another one", "store_location", (), "before", variables={"STORE": "other"}),
    Change("numba", "the entry is deleted", "lost", act="delete the entry"),
    Change("numba", "a newer Numba", "build", ("numba",), older=True),
    Change("numba", "the cache is off", "store_off", (), "disabled", variables={"NO_CACHE": "1"}),
    # JAX
    Change("jax", "nothing", None),
    Change("jax", "the body is edited", "source", ("module",), edit=("+ OPENED", "- OPENED * 2")),
    Change("jax", "a global is edited", "source", ("module",), edit=("RATE = 1.19", "RATE = 1.07")),
    Change(
        "jax",
        "a function that it calls is edited",
        "source",
        ("module",),
        edit=("return values * RATE", "return values + RATE"),
    ),
    Change("jax", "a comment is edited", None, edit=("# the sum with tax", "# the sum of all, with tax")),
    Change("jax", "another dtype", "specialization", ("specialization",), variables={"DTYPE": "int32"}),
    Change("jax", "another shape", "specialization", ("specialization",), variables={"SHAPE": "16"}),
    Change("jax", "an option of the compiler", "option", ("options",), variables={"OPTION": "1"}),
    Change(
        "jax",
        "an environment variable",
        "environment",
        ("xla_flags",),
        variables={"XLA_FLAGS": "--xla_cpu_enable_fast_min_max=true"},
    ),
    Change(
        "jax",
        "another number of devices of the host",
        "target",
        ("topology",),
        variables={"XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
    ),
    Change("jax", "the file is touched", None, act="touch"),
    Change(
        "jax",
        "the store is moved",
        "store_location",
        ("cache_folders",),
        "the place of the store is part of the key",
        act="move the store",
    ),
    Change(
        "jax",
        "the store is moved, with the folder taken out of the key",
        None,
        always={"JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none"},
        act="move the store",
    ),
    Change("jax", "the entry is deleted", "lost", act="delete the entry"),
    Change("jax", "the entry is damaged", "damaged", act="damage the entry"),
    Change("jax", "the disk is full", "never_stored", (), "writing raised OSError", is_full=True),
    Change("jax", "a newer JAX", "build", ("jaxlib",), older=True),
    Change(
        "jax",
        "the cache is off",
        "store_off",
        (),
        "disabled",
        variables={"JAX_ENABLE_COMPILATION_CACHE": "0"},
    ),
    Change("jax", "no cache folder", "store_off", (), "no cache folder is set", variables={"STORE": ""}),
    Change(
        "jax",
        "compiled ahead of time, and below the threshold of time",
        "never_stored",
        (),
        "jax_persistent_cache_min_compile_time_secs",
        thread="OpenSourceEconomics/pylcm#392",
        always={"AOT": "1", "THRESHOLD": "default"},
    ),
    Change(
        "jax",
        "nothing, and the function has the decomposition of the report",
        None,
        thread="jax-ml/jax#16649",
        always={"SVD": "1"},
    ),
    Change(
        "jax",
        "a constant that every process draws anew",
        "source",
        ("module",),
        thread="jax-ml/jax#16649",
        always={"OPENED": "1"},
    ),
    # Triton
    Change("triton", "nothing", None),
    Change(
        "triton", "the body is edited", "source", ("source",), edit=("index < count", "index < count + 1")
    ),
    Change("triton", "a global is edited", "source", ("source",), edit=("constexpr(3)", "constexpr(4)")),
    Change(
        "triton",
        "a function that it calls is edited",
        "source",
        ("source",),
        edit=("return value * RATE", "return value + RATE"),
    ),
    Change("triton", "a comment is edited", "source", ("source",), edit=("# every value", "# each value")),
    Change("triton", "another dtype", "specialization", ("signature",), variables={"DTYPE": "float16"}),
    Change("triton", "another constant", "specialization", ("constants",), variables={"SIZE": "128"}),
    Change(
        "triton",
        "an argument is no longer divisible by 16",
        "specialization",
        ("attributes",),
        thread="triton-lang/triton#8273",
        variables={"COUNT": "49"},
    ),
    Change(
        "triton",
        "an argument is 1",
        "specialization",
        ("constants",),
        thread="triton-lang/triton#8273",
        variables={"COUNT": "1"},
    ),
    Change("triton", "an option", "option", ("num_warps",), variables={"WARPS": "8"}),
    Change(
        "triton",
        "an environment variable",
        "environment",
        ("environment",),
        variables={"DISABLE_LLVM_OPT": "1"},
    ),
    Change("triton", "another GPU", "target", ("arch",), variables={"ARCH": "80"}),
    Change("triton", "the file is touched", None, act="touch"),
    Change("triton", "the store is moved", "store_location", (), "before", act="move the store"),
    Change("triton", "the entry is deleted", "lost", act="delete the entry"),
    Change("triton", "the cache is off", "store_off", variables={"TRITON_ALWAYS_COMPILE": "1"}),
    # torch
    Change("torch", "the body is edited", "source", ("graph",), edit=(".sin()", ".cos()")),
    Change("torch", "a global is edited", "source", ("graph",), edit=("RATE = 1.19", "RATE = 1.07")),
    Change(
        "torch",
        "a function that it calls is edited",
        "source",
        ("graph",),
        edit=("return values * RATE", "return values + RATE"),
    ),
    Change("torch", "a comment is edited", None, edit=("# the sum with tax", "# the sum of all, with tax")),
    Change("torch", "another dtype", "specialization", ("inputs",), variables={"DTYPE": "float64"}),
    Change("torch", "another shape", "specialization", ("inputs",), variables={"SHAPE": "32x4"}),
    Change("torch", "an option", "option", ("config_changed",), variables={"OPTION": "1"}),
    Change("torch", "the entry is deleted", "lost", act="delete the entry"),
    Change("torch", "the store is moved", None, act="move the store"),
    Change(
        "torch",
        "the cache is off",
        "store_off",
        (),
        "disabled",
        variables={"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"},
    ),
)
"""All changes."""
