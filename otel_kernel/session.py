"""Which process this is: its session, the run it belongs to, its rank."""

from __future__ import annotations

import itertools
import os
import re
import secrets
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from otel_kernel import faults
from otel_kernel.records import Session

RUN_VARIABLE = "OTEL_KERNEL_RUN"

RankSource: TypeAlias = "Callable[[], tuple[int, int] | None]"
"""Tells rank and world size of this process, or None where it does not know."""

_rank_sources: list[RankSource] = []

# Launchers name rank and size of the world differently; the first pair that is set wins.
_RANK_VARIABLES = (
    ("RANK", "WORLD_SIZE"),  # torchrun, DeepSpeed, accelerate
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


def _inherited_run() -> str:
    run = os.environ.get(RUN_VARIABLE, "")
    if not re.fullmatch(r"[0-9a-f]{32}", run):
        run = secrets.token_hex(16)
        os.environ[RUN_VARIABLE] = run  # so that child processes belong to the same run
    return run


def _begin(run: str) -> None:
    global _session, _seq, _pid
    _session, _seq, _pid = Session(id=secrets.token_hex(16), run=run), itertools.count(), os.getpid()


# Drawn now and not by the first trip: the first trips of two threads belong to one session.
_session: Session
_seq: itertools.count[int]
_pid: int
_begin(_inherited_run())
os.register_at_fork(after_in_child=lambda: _begin(_session.run))


def current() -> Session:
    """Return the session of this process; a forked child has one of its own."""
    return _session


def next_seq() -> int:
    """Return the number of the session's next trip."""
    return next(_seq)


def pid() -> int:
    """Return the id of this process, without asking the system for it."""
    return _pid


def ask_for_rank(source: RankSource) -> None:
    """Ask `source` for the rank from here on, before the environment is asked."""
    _rank_sources.append(source)


def ask_no_more(source: RankSource) -> None:
    """Do not ask `source` any more."""
    if source in _rank_sources:
        _rank_sources.remove(source)


def rank() -> tuple[int, int | None] | None:
    """Return (rank, world size or None) as a runtime's process group or the launcher's environment tells, or None.

    The group comes first: where one launcher's task starts several workers itself, as a model server does, the
    environment is that of the task.
    """
    global _known
    for source in _rank_sources:
        try:
            found = source()
        except Exception:
            faults.caught("asking a runtime for the rank")
            continue
        if found is not None:
            return found
    environ = os.environ
    # Looking up variables that are not there takes as long as the rest of a trip: so it is done again only
    # where one may have come or gone, or the one that told says something else.
    if _known.variables != len(environ) or (_known.teller and environ.get(_known.teller) != _known.said):
        _known = _look_up(environ)
    return _known.rank


class _Rank(NamedTuple):
    """What the environment has told."""

    variables: int
    """How many there were."""
    teller: str = ""
    """Variable that told the rank."""
    said: str = ""
    """Its value."""
    rank: tuple[int, int | None] | None = None


def _look_up(environ: Mapping[str, str]) -> _Rank:
    for rank_variable, size_variable in _RANK_VARIABLES:
        value = environ.get(rank_variable)
        if value is not None and value.isdecimal():
            size = environ.get(size_variable, "")
            found = int(value), int(size) if size.isdecimal() else None
            return _Rank(len(environ), rank_variable, value, found)
    return _Rank(len(environ))


_known = _Rank(-1)
