"""The two dashboards: a fleet with a way down to one kernel, and the start-up of a release beside the one before."""

from __future__ import annotations

from typing import Final

from generators.grafana import SQL, Dashboard, Panel, PromQL, Row, Variable

_GOOD_BAD: Final = ((None, "green"), (1, "red"))
_TRIPS: Final = "job:compute_kernel_trips:delta1m"
_OUTCOME: Final = "compute_kernel_compilation_outcome"

_DATA_SOURCES: Final = (
    Variable("prometheus", "Prometheus", "prometheus"),
    Variable("clickhouse", "ClickHouse", "grafana-clickhouse-datasource"),
)

_SERVICE: Final = Variable(
    "service", "Service", SQL("SELECT DISTINCT service FROM kernel_trips WHERE $__timeFilter(started)")
)

_THESE: Final = "service = '${service}' AND $__timeFilter(started)"
_THIS_KERNEL: Final = f"{_THESE} AND kernel = '${{kernel}}'"
_TO_KERNEL: Final = "/d/otel-kernel-fleet?var-kernel=${__value.raw}&${service:queryparam}&${__url_time_range}"


def _counted(
    title: str, matchers: str, description: str, thresholds: tuple[tuple[float | None, str], ...]
) -> Panel:
    selector = f'{_TRIPS}{{job=~"$job"{matchers}}}'
    expr = f"sum(sum_over_time({selector}[$__range])) or vector(0)"
    return Panel(
        title, "stat", PromQL(expr, instant=True), 4, 4, description=description, thresholds=thresholds
    )


_OVERVIEW: Final = Row(
    "Overview, from metrics: all trips, whatever a sampler decides",
    (
        _counted(
            "Compiled", f', {_OUTCOME}="compiled"', "Artifacts that a compiler made.", ((None, "text"),)
        ),
        _counted("Loaded", f', {_OUTCOME}="loaded"', "Artifacts that a store had.", ((None, "text"),)),
        _counted("Failed", ', error_type!=""', "Trips that ended with an error.", _GOOD_BAD),
        _counted(
            "Compiled while serving",
            f', compute_kernel_phase="serving", {_OUTCOME}="compiled"',
            "Requests wait for these.",
            _GOOD_BAD,
        ),
        Panel(
            "Oldest in flight",
            "stat",
            PromQL(
                'max(compute_kernel_compilation_oldest_active_seconds{job=~"$job"}) or vector(0)',
                instant=True,
            ),
            4,
            4,
            "s",
            "Age of the oldest trip that has not ended: a hang shows here.",
            thresholds=((None, "green"), (60, "orange"), (600, "red")),
        ),
        Panel(
            "Not instrumented",
            "stat",
            PromQL(
                'count(compute_kernel_instrumentation_points{job=~"$job", '
                'compute_kernel_instrumentation_state="refused"} > 0) or vector(0)',
                instant=True,
            ),
            4,
            4,
            description="Runtimes of processes that were left alone: their silence is no health.",
            thresholds=_GOOD_BAD,
        ),
        Panel(
            "Trips a minute, by outcome",
            "timeseries",
            PromQL(
                f'sum by ({_OUTCOME}, error_type) (avg_over_time({_TRIPS}{{job=~"$job"}}[$__interval]))',
                f"{{{{{_OUTCOME}}}}}{{{{error_type}}}}",
            ),
            12,
        ),
        Panel(
            "Share loaded, by service and layer",
            "timeseries",
            PromQL(
                'job_layer:compute_kernel_loaded_share:ratio30m{job=~"$job"}',
                "{{job}} {{compute_kernel_layer}}",
            ),
            12,
            unit="percentunit",
            description="Of half an hour with at least 20 records.",
        ),
        Panel(
            "Slowest 1 % of compiles, by runtime",
            "timeseries",
            PromQL(
                "histogram_quantile(0.99, sum by (le, compute_kernel_runtime) (sum_over_time("
                f'job:compute_kernel_trip_buckets:delta1m{{job=~"$job", {_OUTCOME}="compiled"}}[1h])))',
                "{{compute_kernel_runtime}}",
            ),
            12,
            unit="s",
            description="Of the hour before; as exact as the buckets.",
        ),
        Panel(
            "Time in trips a minute, by layer",
            "timeseries",
            PromQL(
                "sum by (compute_kernel_layer) (avg_over_time("
                'job:compute_kernel_trip_seconds:delta1m{job=~"$job"}[$__interval]))',
                "{{compute_kernel_layer}}",
            ),
            12,
            unit="s",
            description="Never add layers up: they hold the same time. Threads overlap too.",
        ),
    ),
)

_KERNELS: Final = Row(
    "Kernels of $service, from spans",
    (
        Panel(
            "Kernels by time",
            "table",
            SQL(
                "SELECT kernel, layer, count() AS trips, countIf(outcome = 'compiled') AS compiled, "
                "countIf(outcome = 'loaded') / count() AS loaded, countIf(state = 'failed') AS failed, "
                "countIf(phase = 'serving' AND outcome = 'compiled') AS serving, "
                "sum(duration_ns) / 1e9 AS time, max(duration_ns) / 1e9 AS slowest "
                f"FROM kernel_trips WHERE {_THESE} GROUP BY kernel, layer ORDER BY time DESC LIMIT 100"
            ),
            24,
            10,
            links={"kernel": _TO_KERNEL},
            units={"time": "s", "slowest": "s", "loaded": "percentunit"},
            description="A kernel leads to its own panels below.",
        ),
    ),
)

_ONE_KERNEL: Final = Row(
    "One kernel: $kernel",
    (
        Panel(
            "Its trips",
            "timeseries",
            SQL(
                "SELECT toDateTime(started) AS time, toString(outcome) AS how, max(duration_ns) / 1e9 AS seconds "
                f"FROM kernel_trips WHERE {_THIS_KERNEL} AND outcome IS NOT NULL GROUP BY time, how ORDER BY time"
            ),
            12,
            unit="s",
        ),
        Panel(
            "Its stages",
            "table",
            SQL(
                "SELECT stage, count() AS trips, sum(stage_ns) / 1e9 AS time, max(stage_ns) / 1e9 AS slowest "
                "FROM kernel_trips ARRAY JOIN mapKeys(stages) AS stage, mapValues(stages) AS stage_ns "
                f"WHERE {_THIS_KERNEL} GROUP BY stage ORDER BY time DESC"
            ),
            12,
            units={"time": "s", "slowest": "s"},
        ),
        Panel(
            "Its specializations",
            "table",
            SQL(
                "SELECT specialization, target, countIf(outcome = 'compiled') AS compiled, "
                "countIf(outcome = 'loaded') AS loaded, countIf(phase = 'serving' AND outcome = 'compiled') AS serving, "
                "uniqExact(key_id, key_build_id) AS keys, max(duration_ns) / 1e9 AS slowest FROM kernel_trips "
                f"WHERE {_THIS_KERNEL} GROUP BY specialization, target ORDER BY slowest DESC LIMIT 100"
            ),
            12,
            units={"slowest": "s"},
        ),
        Panel(
            "Why it was compiled, failed, or not stored",
            "table",
            SQL(
                "SELECT started, pod, toString(outcome) AS how, error_type, compilation_reason AS reason, "
                "store_reason AS not_stored, duration_ns / 1e9 AS seconds, trace_id FROM kernel_trips "
                f"WHERE {_THIS_KERNEL} AND (outcome = 'compiled' OR state = 'failed') ORDER BY started DESC LIMIT 100"
            ),
            12,
            units={"seconds": "s"},
        ),
    ),
)

FLEET: Final = Dashboard(
    "otel-kernel-fleet",
    "Kernel compilation: fleet",
    "What compiles, what loads, what fails, and one kernel in detail.",
    (
        *_DATA_SOURCES,
        Variable(
            "job",
            "Job",
            PromQL("label_values(compute_kernel_compilation_duration_seconds_count, job)"),
            multi=True,
        ),
        _SERVICE,
        Variable(
            "kernel",
            "Kernel",
            SQL(
                f"SELECT kernel FROM kernel_trips WHERE {_THESE} GROUP BY kernel ORDER BY sum(duration_ns) DESC"
            ),
        ),
    ),
    (_OVERVIEW, _KERNELS, _ONE_KERNEL),
)

_VERSIONS: Final = (
    "SELECT service_version FROM kernel_trips WHERE "
    f"{_THESE} GROUP BY service_version ORDER BY max(started) DESC"
)
_BOTH: Final = (
    f"{_THESE} AND service_version IN ('${{before}}', '${{after}}') AND ifNull(phase, 'startup') = 'startup'"
)
_AFTER: Final = f"{_THESE} AND service_version = '${{after}}' AND ifNull(phase, 'startup') = 'startup'"

RELEASE: Final = Dashboard(
    "otel-kernel-release",
    "Kernel compilation: start-up of a release",
    "How long starts take in compiling, before and after a release, by rank; what is compiled again and why.",
    (
        *_DATA_SOURCES,
        _SERVICE,
        Variable("before", "Before", SQL(_VERSIONS)),
        Variable("after", "After", SQL(_VERSIONS)),
    ),
    (
        Row(
            "Before and after",
            (
                Panel(
                    "Start-ups",
                    "table",
                    SQL(
                        "SELECT service_version, min(started) AS first, uniqExact(run) AS starts, "
                        "uniqExact(session) AS processes, countIf(outcome = 'compiled') AS compiled, "
                        "countIf(outcome = 'loaded') AS loaded, countIf(state = 'failed') AS failed, "
                        "arrayStringConcat(groupUniqArray(build), ', ') AS builds "
                        f"FROM kernel_trips WHERE {_BOTH} GROUP BY service_version ORDER BY first"
                    ),
                    24,
                    6,
                ),
                Panel(
                    "Share loaded, by layer",
                    "barchart",
                    SQL(
                        "SELECT concat(layer, ' ', service_version) AS release, "
                        "countIf(outcome = 'loaded') / countIf(outcome IS NOT NULL) AS loaded "
                        f"FROM kernel_trips WHERE {_BOTH} GROUP BY layer, service_version ORDER BY release"
                    ),
                    12,
                    unit="percentunit",
                ),
                Panel(
                    "Time from the first trip to the end of the last, by layer",
                    "barchart",
                    SQL(
                        "SELECT concat(layer, ' ', service_version) AS release, max(seconds) AS seconds FROM ("
                        "SELECT layer, service_version, session, "
                        "(max(started_ns + toInt64(duration_ns)) - min(started_ns)) / 1e9 AS seconds "
                        f"FROM kernel_trips WHERE {_BOTH} GROUP BY layer, service_version, session"
                        ") GROUP BY layer, service_version ORDER BY release"
                    ),
                    12,
                    unit="s",
                    description="Of the process that took longest.",
                ),
            ),
        ),
        Row(
            "By rank, after",
            (
                Panel(
                    "Ranks",
                    "table",
                    SQL(
                        "SELECT rank, pod, countIf(outcome = 'compiled') AS compiled, countIf(outcome = 'loaded') AS loaded, "
                        "sumIf(duration_ns, outcome = 'compiled') / 1e9 AS compiling, "
                        "(max(started_ns + toInt64(duration_ns)) - min(started_ns)) / 1e9 AS start_up "
                        f"FROM kernel_trips WHERE {_AFTER} GROUP BY rank, pod ORDER BY start_up DESC"
                    ),
                    12,
                    units={"compiling": "s", "start_up": "s"},
                ),
                Panel(
                    "Compiled by more than one rank",
                    "table",
                    SQL(
                        "SELECT kernel, specialization, uniqExact(rank) AS ranks, count() AS compiled, "
                        "sum(duration_ns) / 1e9 AS seconds "
                        f"FROM kernel_trips WHERE {_AFTER} AND outcome = 'compiled' "
                        "GROUP BY run, kernel, specialization, key_id HAVING ranks > 1 ORDER BY seconds DESC LIMIT 50"
                    ),
                    12,
                    units={"seconds": "s"},
                    links={"kernel": _TO_KERNEL},
                ),
            ),
        ),
        Row(
            "What is compiled again",
            (
                Panel(
                    "Compiled after, and before it too",
                    "table",
                    SQL(
                        "SELECT kernel, specialization, countIf(service_version = '${before}') AS before, "
                        "countIf(service_version = '${after}') AS after, uniqExact(key_build_id) > 1 AS other_build, "
                        "uniqExact(key_id) > 1 AS other_key, any(store_reason) AS not_stored, "
                        "sumIf(duration_ns, service_version = '${after}') / 1e9 AS seconds "
                        f"FROM kernel_trips WHERE {_BOTH} AND outcome = 'compiled' "
                        "GROUP BY kernel, specialization, identity HAVING before > 0 AND after > 0 ORDER BY seconds DESC LIMIT 100"
                    ),
                    24,
                    10,
                    units={"seconds": "s"},
                    links={"kernel": _TO_KERNEL},
                    description="The same code for the same types: another build, another key, or a store that took nothing.",
                ),
                Panel(
                    "New after",
                    "table",
                    SQL(
                        "SELECT kernel, specialization, count() AS trips, sum(duration_ns) / 1e9 AS seconds "
                        f"FROM kernel_trips WHERE {_THESE} AND service_version IN ('${{before}}', '${{after}}') "
                        "AND outcome IS NOT NULL GROUP BY kernel, specialization, identity "
                        "HAVING countIf(service_version = '${before}') = 0 ORDER BY seconds DESC LIMIT 100"
                    ),
                    24,
                    units={"seconds": "s"},
                    links={"kernel": _TO_KERNEL},
                ),
            ),
        ),
    ),
    "now-7d",
)
