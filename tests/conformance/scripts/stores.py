"""Scripts about a store that cannot be used as it should."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from conformance.harness import kernels, raised_by, value, watch
from otel_kernel.trip import error_type


def main() -> None:
    watch()
    _report(kernels().main)


def second_in_a_read_only_store() -> None:
    """Load what is stored, and compile what is not, from a store that cannot be written any more."""
    watch()
    program = kernels()
    for folder, _, _ in os.walk(_store()):
        Path(folder).chmod(0o555)
    lose_privileges()
    value("main", program.main())
    _report(program.second)


def second_with_a_file_for_a_store() -> None:
    watch()
    program = kernels()
    shutil.rmtree(_store(), ignore_errors=True)
    _store().touch()
    _report(program.second)


def unloadable() -> None:
    watch()
    _report(kernels().unloadable)


def _store() -> Path:
    return Path(os.environ["CONFORMANCE_STORE"])


def _report(call: Callable[[], object]) -> None:
    error = raised_by(call)
    value("raised", None if error is None else error_type(error))


def lose_privileges() -> None:
    """Make the permissions of files bind this process even where it is root's."""

    class Header(ctypes.Structure):
        _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]

    class Data(ctypes.Structure):
        _fields_ = [
            ("effective", ctypes.c_uint32),
            ("permitted", ctypes.c_uint32),
            ("inheritable", ctypes.c_uint32),
        ]

    third_version = 0x20080522  # _LINUX_CAPABILITY_VERSION_3: two words for each set
    none = (Data * 2)()
    if ctypes.CDLL(None).capset(ctypes.byref(Header(third_version, 0)), none) != 0:
        raise OSError("the capabilities of this process cannot be dropped")
