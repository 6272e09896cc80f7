"""Cases for `promtool test rules`, written the way the metrics of processes look in Prometheus."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from servers.debian import binary

from otel_kernel import semconv

CONFIG: Final = Path(__file__).parents[2] / "collector-config"
RULES: Final = CONFIG / "prometheus" / "otel-kernel.rules.yaml"

DURATION: Final = "compute_kernel_compilation_duration_seconds"
OLDEST: Final = "compute_kernel_compilation_oldest_active_seconds"
POINTS: Final = "compute_kernel_instrumentation_points"

Values = Sequence[float | None]
"""A sample a minute; None where there is none."""

Series = dict[str, Values]
"""Values by the series they are of."""

HOUR: Final = 60


def series(name: str, **labels: str) -> str:
    """Return a metric with its labels, as PromQL names one series."""
    return f"{name}{{{', '.join(f'{label}={value!r}' for label, value in sorted(labels.items()))}}}"


def trips(
    count: Values,
    *,
    slow: Values | None = None,
    seconds: float = 200,
    job: str = "shop/prices",
    instance: str = "pod-1",
    runtime: str = "numba",
    layer: str | None = None,
    outcome: str = "compiled",
    **labels: str,
) -> Series:
    """Return what one process counts of the trips that share their attributes.

    Args:
        count: how many there were until each minute, as a counter of the SDK has it.
        slow: how many of them took long; the others took half a second. Without it there are no buckets, as
            promtool takes no more than 10,000 samples.
        seconds: that those took.
        job: its service.
        instance: its `service.instance.id`.
        runtime: that compiles.
        layer: of the runtime, named like it by default.
        outcome: of the trips, empty for failed ones.
        labels: `phase`, `stored`, `error_type`.
    """
    names = {
        "phase": "compute_kernel_phase",
        "stored": "compute_kernel_store_stored",
        "error_type": "error_type",
    }
    common = {
        "job": job,
        "instance": instance,
        "otel_scope_name": "otel_kernel",
        "compute_kernel_runtime": runtime,
        "compute_kernel_layer": layer or runtime,
        "compute_kernel_compilation_outcome": outcome,
        **{names[name]: value for name, value in labels.items()},
    }
    common = {name: value for name, value in common.items() if value}
    made: Series = {series(f"{DURATION}_count", **common): count}
    if slow is None:
        return made
    pairs = [
        None if all_ is None or long is None else (all_ - long, all_)
        for all_, long in zip(count, slow, strict=True)
    ]
    made[series(f"{DURATION}_sum", **common)] = [
        None if each is None else 0.5 * each[0] + seconds * (each[1] - each[0]) for each in pairs
    ]
    made[series(f"{DURATION}_bucket", le="+Inf", **common)] = count
    for bound in semconv.DURATION_BUCKETS:
        made[series(f"{DURATION}_bucket", le=f"{bound:g}", **common)] = [
            None if each is None else 0 if bound < 0.5 else each[bound >= seconds] for each in pairs
        ]
    return made


def rising(start: int, step: int, minutes: int) -> list[float | None]:
    """Return a counter that stands at `start` and rises by `step` every minute."""
    return [start + step * minute for minute in range(minutes)]


def silence(minutes: int) -> list[float | None]:
    """Return no sample for some minutes."""
    return [None] * minutes


def level(value: float, minutes: int) -> list[float | None]:
    """Return the same value for some minutes."""
    return [value] * minutes


@dataclass(frozen=True)
class Alert:
    """An alert that fires: its labels but for name and severity, and what it says."""

    summary: str
    labels: Mapping[str, str]


def of_layer(summary: str, *, job: str = "shop/prices", runtime: str = "numba", **labels: str) -> Alert:
    """Return an alert on one layer that is named like its runtime."""
    return Alert(
        summary,
        {"job": job, "compute_kernel_runtime": runtime, "compute_kernel_layer": runtime, **labels},
    )


@dataclass(frozen=True)
class Case:
    """What an alert does on some metrics."""

    alert: str
    name: str
    input: Series
    at: Mapping[int, Sequence[Alert]]
    """What fires by the minute at which it is looked at."""

    @property
    def fires(self) -> bool:
        """Whether anything is to fire at all."""
        return any(self.at.values())


def rules() -> dict[str, dict[str, Any]]:
    """Return the alerting rules by their names."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


def complaints(case: Case, folder: Path, rules_file: Path = RULES) -> str:
    """Return what promtool says against the rules in this case; nothing if all is as it should be."""
    rule = rules()[case.alert]
    written = {
        "rule_files": [str(rules_file)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": " ".join("_" if v is None else f"{v:g}" for v in values)}
                    for name, values in case.input.items()
                ],
                "alert_rule_test": [
                    {
                        "alertname": case.alert,
                        "eval_time": f"{minute}m",
                        "exp_alerts": [
                            {
                                "exp_labels": {**rule["labels"], **alert.labels},
                                "exp_annotations": {**rule["annotations"], "summary": alert.summary},
                            }
                            for alert in alerts
                        ],
                    }
                    for minute, alerts in case.at.items()
                ],
            }
        ],
    }
    path = folder / "case.yaml"
    path.write_text(json.dumps(written))
    done = subprocess.run(
        [binary("promtool"), "test", "rules", path], capture_output=True, encoding="utf-8", check=False
    )
    return done.stdout + done.stderr if done.returncode else ""
