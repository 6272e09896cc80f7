"""A comparison of ranks as one JSON object: `schemas/ranks.schema.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from otel_kernel.report.ranks import Rank, Ranks


def ranks_json(ranks: Ranks) -> dict[str, Any]:
    """Return the object; times in ns, null where something is not known."""
    slowest = ranks.slowest
    return {
        "run": ranks.run,
        "ranks": [_rank(rank) for rank in ranks.ranks],
        "slowest": slowest.rank if slowest is not None else None,
        "unranked": {
            "processes": ranks.unranked_processes,
            "trips": ranks.unranked.trips,
            **asdict(ranks.unranked),
        },
        "shared_kernels": ranks.shared_kernels,
        "duplicate_kernels": ranks.duplicate_kernels,
        "duplicate_compilations": [asdict(each) for each in ranks.duplicates],
        "hold_ups": [asdict(each) for each in ranks.hold_ups],
        "unfinished_trips": [asdict(each) for each in ranks.unfinished],
    }


def _rank(rank: Rank) -> dict[str, Any]:
    return {
        "rank": rank.rank,
        "world_size": rank.world_size,
        "hosts": rank.hosts,
        "processes": rank.processes,
        "trips": rank.counts.trips,
        **asdict(rank.counts),
        "spent_ns": rank.spent_ns,
        "waited_ns": rank.waited_ns,
        "held_up_ns": rank.held_up_ns,
    }
