"""A summary as one JSON object: `schemas/report.schema.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from otel_kernel.report.explained import Explained
from otel_kernel.report.summary import Counts, InternalLine, KernelLine, Layer, Saved, Summary
from otel_kernel.report.why_json import why_json


def report_json(summary: Summary) -> dict[str, Any]:
    """Return the object; times in ns, shares from 0 to 1, null where something is not known."""
    return {
        "run": summary.run,
        "runs": summary.runs,
        "processes": summary.processes,
        "started_ns": summary.started_ns,
        "trips": summary.counts.trips,
        **asdict(summary.counts),
        "spent_ns": summary.spent_ns,
        "saved": _saved(summary.saved),
        "layers": [_layer(layer) for layer in summary.layers],
        "serving": [asdict(kernel) for kernel in summary.serving],
        "failed_trips": [asdict(trip) for trip in summary.failed],
        "unfinished_trips": [asdict(trip) for trip in summary.unfinished],
        "explained": [_explained(each) for each in summary.explained],
    }


def _counts(counts: Counts) -> dict[str, Any]:
    return {"trips": counts.trips, **asdict(counts), "loaded_share": counts.loaded_share}


def _saved(saved: Saved) -> dict[str, Any]:
    return {**asdict(saved), "unknown_share": saved.unknown_share}


def _layer(layer: Layer) -> dict[str, Any]:
    return {
        "runtime": layer.runtime,
        "layer": layer.layer,
        **_counts(layer.counts),
        "spent_ns": layer.spent_ns,
        "saved": _saved(layer.saved),
        "kernels": [_line(line) for line in layer.kernels],
        "internal": _folded(layer.internal) if layer.internal else None,
    }


def _line(line: KernelLine) -> dict[str, Any]:
    return {"kernel": line.kernel, **_counts(line.counts), "own_ns": line.own_ns}


def _folded(line: InternalLine) -> dict[str, Any]:
    return {"kernels": line.kernels, **_counts(line.counts), "own_ns": line.own_ns}


def _explained(each: Explained) -> dict[str, Any]:
    return {
        **each.kernel._asdict(),
        "outcome": each.record.outcome,
        "trips": each.trips,
        "session": each.record.session,
        "seq": each.record.seq,
        "why": why_json(each.why),
    }
