"""What differs between two runs as one JSON object: `schemas/diff.schema.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from otel_kernel.report.difference import Difference, Entry
from otel_kernel.report.instances import Cost, Side
from otel_kernel.report.why_json import why_json


def difference_json(difference: Difference) -> dict[str, Any]:
    """Return the object; times in ns, null where something is not known or not there."""
    return {
        "before": _side(difference.before),
        "after": _side(difference.after),
        "threshold": difference.threshold._asdict(),
        "kernels": [_entry(entry) for entry in difference.entries],
        "failures": [
            {**failure.kernel._asdict(), "is_new": failure.is_new, **asdict(failure.failed)}
            for failure in difference.failures
        ],
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "input": side.name,
        "run": side.run,
        "started_ns": side.started_ns,
        "processes": side.processes,
        "trips": side.counts.trips,
        **asdict(side.counts),
        "spent_ns": side.spent_ns,
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        **entry.kernel._asdict(),
        **entry.instance._asdict(),
        "internal": entry.internal,
        "change": entry.change.value if entry.change else None,
        "before": _cost(entry.before),
        "after": _cost(entry.after),
        "why": why_json(entry.why) if entry.why else None,
    }


def _cost(cost: Cost | None) -> dict[str, int] | None:
    return None if cost is None else {"trips": cost.trips, **asdict(cost)}
