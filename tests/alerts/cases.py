"""What each alert does: where it fires and where it keeps silent, for jobs that are short, restart, or are many.

Minutes count from 0. What a process exports in a minute is counted in the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from alerts.promtool import (
    HOUR,
    OLDEST,
    POINTS,
    Alert,
    Case,
    Series,
    level,
    of_layer,
    rising,
    series,
    silence,
    trips,
)


def _merged(*parts: Series) -> Series:
    return {name: values for part in parts for name, values in part.items()}


def _serving() -> list[Case]:
    alert = "ComputeKernelCompiledWhileServing"

    def says(number: int) -> Alert:
        return of_layer(f"shop/prices compiled {number} kernels of numba while serving")

    return [
        Case(
            alert,
            "fires for one compile, and for ten minutes",
            _merged(
                trips(level(7, 30), phase="startup"),
                trips([*silence(5), *level(1, 25)], phase="serving"),
            ),
            {5: [], 6: [says(1)], 15: [says(1)], 16: []},
        ),
        Case(
            alert,
            "is silent for compiles at start-up and for loads while serving",
            _merged(
                trips(rising(0, 3, 30), phase="startup"),
                trips(rising(0, 3, 30), phase="serving", outcome="loaded"),
                trips(rising(0, 3, 30)),
            ),
            {10: [], 29: []},
        ),
        Case(
            alert,
            "short-lived: fires for a job that exports once and is gone",
            trips([*silence(5), 2], phase="serving"),
            {6: [says(2)], 12: [says(2)], 16: []},
        ),
        Case(
            alert,
            "restart: counts on from 0 where a counter falls, and nothing twice",
            trips([*level(40, 20), *level(3, 20)], phase="serving"),
            {1: [says(40)], 15: [], 19: [], 21: [says(3)], 35: []},
        ),
        Case(
            alert,
            "away: is silent when the Collector was away for half an hour and nothing was compiled",
            trips([*level(40, 20), *silence(30), *level(40, 20)], phase="serving"),
            {19: [], 51: [], 60: []},
        ),
        Case(
            alert,
            "away: counts what was compiled while the Collector was away",
            trips([*level(40, 20), *silence(30), *level(42, 20)], phase="serving"),
            {19: [], 51: [says(2)]},
        ),
        Case(
            alert,
            "many pods: says one number for a service, and keeps services apart",
            _merged(
                *(
                    trips([*silence(5), *level(1, 10)], phase="serving", instance=f"pod-{each}")
                    for each in range(100)
                ),
                trips([*silence(5), *level(2, 10)], phase="serving", job="shop/stock"),
            ),
            {
                8: [
                    says(100),
                    of_layer("shop/stock compiled 2 kernels of numba while serving", job="shop/stock"),
                ]
            },
        ),
    ]


def _slow() -> list[Case]:
    alert = "ComputeKernelCompileSlow"

    def says(number: int, runtime: str = "numba") -> Alert:
        return of_layer(f"shop/prices had {number} slow compiles of {runtime}", runtime=runtime)

    def all_took(seconds: float, runtimes: Sequence[str]) -> Series:
        count = [*level(0, 5), *level(4, 10)]
        return _merged(*(trips(count, slow=count, seconds=seconds, runtime=each) for each in runtimes))

    return [
        Case(
            alert,
            "fires for one slow compile among quick ones",
            trips(rising(0, 5, 20), slow=[*level(0, 5), *level(1, 15)]),
            {5: [], 6: [says(1)], 15: [says(1)], 16: []},
        ),
        Case(
            alert,
            "has a threshold by runtime: 59 s are slow for numba and triton alone",
            all_took(59, ("numba", "triton", "torch", "jax", "warp")),
            {8: [says(4, "numba"), says(4, "triton")]},
        ),
        Case(
            alert,
            "has a threshold by runtime: 119 s are slow for all but torch",
            all_took(119, ("torch", "jax", "warp")),
            {8: [says(4, "jax"), says(4, "warp")]},
        ),
        Case(
            alert,
            "is silent for slow loads and for many quick compiles",
            _merged(
                trips(rising(0, 50, 20), slow=level(0, 20)),
                trips(rising(0, 1, 20), slow=rising(0, 1, 20), outcome="loaded"),
            ),
            {10: [], 19: []},
        ),
        Case(
            alert,
            "short-lived: fires for a job that exports once and is gone",
            trips([*silence(5), 3], slow=[*silence(5), 2]),
            {6: [says(2)], 15: [says(2)], 16: []},
        ),
        Case(
            alert,
            "restart: is silent when a process comes back with more quick compiles than it had, and fewer trips",
            trips([*level(20, 20), *level(10, 20)], slow=[*level(19, 20), *level(0, 20)]),
            {19: [], 21: [], 25: []},
        ),
        Case(
            alert,
            "restart: fires for what was slow after it",
            trips([*level(20, 20), *level(10, 20)], slow=[*level(19, 20), *level(2, 20)]),
            {19: [], 21: [says(2)]},
        ),
        Case(
            alert,
            "many pods: finds the one slow compile of fifty pods",
            _merged(
                *(trips(level(5, 8), slow=level(0, 8), instance=f"pod-{each}") for each in range(50)),
                trips([*silence(3), *level(6, 5)], slow=[*silence(3), *level(1, 5)], instance="pod-x"),
            ),
            {5: [says(1)]},
        ),
    ]


def _failing() -> list[Case]:
    alert = "ComputeKernelCompileFailing"
    error = "numba.core.errors.TypingError"

    def says(number: int) -> Alert:
        return of_layer(f"shop/prices failed to compile {number} kernels of numba: {error}", error_type=error)

    return [
        Case(
            alert,
            "fires for a failed trip",
            _merged(
                trips(rising(0, 1, 20)), trips([*silence(5), *level(1, 15)], outcome="", error_type=error)
            ),
            {5: [], 6: [says(1)], 16: []},
        ),
        Case(alert, "is silent for records", trips(rising(0, 1, 20)), {10: [], 19: []}),
        Case(
            alert,
            "short-lived: fires for a job that fails, exports once and is gone",
            trips([*silence(5), 1], outcome="", error_type=error),
            {6: [says(1)], 15: [says(1)]},
        ),
        Case(
            alert,
            "restart: fires again after one, and only for what failed since",
            trips([*level(9, 20), *level(1, 20)], outcome="", error_type=error),
            {15: [], 21: [says(1)], 35: []},
        ),
        Case(
            alert,
            "many pods: says one number for a service",
            _merged(
                *(
                    trips([*silence(5), *level(1, 9)], outcome="", error_type=error, instance=f"pod-{n}")
                    for n in range(100)
                )
            ),
            {8: [says(100)]},
        ),
    ]


def _collapsed() -> list[Case]:
    alert = "ComputeKernelLoadedShareCollapsed"

    def says(share: str) -> Alert:
        return of_layer(
            f"shop/prices loaded {share} of numba from the store, less than half of the day before"
        )

    hour_of_loads = trips(rising(0, 1, 90), outcome="loaded")
    return [
        Case(
            alert,
            "fires when all that was loaded is compiled, after five minutes",
            _merged(
                trips([*rising(0, 1, 90), *level(89, 60)], outcome="loaded"),
                trips([*silence(90), *rising(1, 2, 60)]),
            ),
            {100: [], 118: [says("3.509%")]},
        ),
        Case(
            alert,
            "is silent while loads go on, and below twenty trips in half an hour",
            _merged(hour_of_loads, trips([*silence(60), *level(19, 60)])),
            {70: [], 89: [], 110: []},
        ),
        Case(
            alert,
            "is silent where little was ever loaded",
            _merged(trips(level(8, 150), outcome="loaded"), trips(rising(0, 2, 150))),
            {70: [], 149: []},
        ),
        Case(
            alert,
            "short-lived: sees it in jobs that export once",
            _merged(
                *(trips([*silence(3 * n), 5], outcome="loaded", instance=f"job-{n}") for n in range(30)),
                *(trips([*silence(90 + 3 * n), 5], instance=f"job-{30 + n}") for n in range(12)),
            ),
            {89: [], 123: [says("0%")]},
        ),
        Case(
            alert,
            "restart: is silent when pods start again and load what they loaded before",
            _merged(
                *(
                    trips(
                        [*level(10, 60), *level(10, 60), *level(9, 60)], outcome="loaded", instance=f"pod-{n}"
                    )
                    for n in range(4)
                ),
                trips([*level(3, 90), *level(1, 90)]),
            ),
            {61: [], 125: [], 140: []},
        ),
        Case(
            alert,
            "many pods: sees it over all pods of a release, each too small for a share",
            _merged(
                *(
                    trips([*silence(n), *level(4, 30)], outcome="loaded", instance=f"old-{n}")
                    for n in range(60)
                ),
                *(trips([*silence(91), *level(4, 60)], instance=f"new-{n}") for n in range(60)),
            ),
            {88: [], 100: [says("0%")]},
        ),
    ]


def _storm() -> list[Case]:
    alert = "ComputeKernelRecompilationStorm"

    def says(number: int, instance: str = "pod-1") -> Alert:
        said = f"shop/prices ({instance}) does not stop compiling numba: {number} kernels in 10 minutes"
        return of_layer(said, instance=instance)

    return [
        Case(
            alert,
            "fires after twenty minutes of a process that compiles five kernels a minute",
            trips(rising(0, 5, HOUR)),
            {20: [], 40: [says(50)]},
        ),
        Case(
            alert,
            "is silent for a long start-up, and for a start that compiles much and ends",
            _merged(
                trips(rising(0, 50, HOUR), phase="startup"),
                trips([*rising(0, 100, 8), *level(700, 52)], job="shop/stock"),
            ),
            {15: [], 40: [], 59: []},
        ),
        Case(
            alert,
            "short-lived: is silent for jobs that export once, each of which compiles all it needs",
            _merged(*(trips([*silence(n), 50], instance=f"job-{n}") for n in range(HOUR))),
            {30: [], 59: []},
        ),
        Case(
            alert,
            "restart: goes on through one",
            trips([*rising(0, 5, 25), *rising(0, 5, 25)]),
            {35: [says(45)], 45: [says(50)]},
        ),
        Case(
            alert,
            "many pods: is silent when a hundred start at once, and over each other's small numbers",
            _merged(*(trips(rising(0, 1, HOUR), instance=f"pod-{each}") for each in range(100))),
            {15: [], 40: []},
        ),
        Case(
            alert,
            "many pods: finds the one that does not stop",
            _merged(
                *(trips(level(20, HOUR), instance=f"pod-{each}") for each in range(100)),
                trips(rising(0, 7, HOUR), instance="pod-x"),
            ),
            {40: [says(70, "pod-x")]},
        ),
    ]


def _in_flight() -> list[Case]:
    alert = "ComputeKernelTripInFlightTooLong"

    def gauge(values: list[float | None], instance: str = "pod-1") -> Series:
        return {series(OLDEST, job="shop/prices", instance=instance, otel_scope_name="otel_kernel"): values}

    def says(age: str, instance: str = "pod-1") -> Alert:
        return Alert(
            f"a kernel of shop/prices ({instance}) has been compiling for {age}",
            {"job": "shop/prices", "instance": instance},
        )

    return [
        Case(
            alert,
            "fires when a trip is ten minutes old, until it ends",
            gauge([*level(0, 5), *rising(30, 60, 15), *level(0, 5)]),
            {14: [], 15: [says("10m 30s")], 19: [says("14m 30s")], 20: []},
        ),
        Case(
            alert, "is silent for trips that end", gauge([0, 60, 120, 0, 60, 540, 0]), {3: [], 5: [], 6: []}
        ),
        Case(
            alert,
            "short-lived: tells of a job that hung and was killed, and stops when its series does",
            gauge([*silence(5), 700]),
            {5: [says("11m 40s")], 9: [says("11m 40s")], 11: []},
        ),
        Case(
            alert,
            "restart: stops, and starts again by the age of the next trip",
            gauge([*rising(550, 60, 4), *rising(0, 60, 8)]),
            {3: [says("12m 10s")], 4: [], 11: []},
        ),
        Case(
            alert,
            "many pods: names the one that hangs",
            _merged(
                *(gauge(level(0, 20), f"pod-{n}") for n in range(100)), gauge(rising(0, 60, 20), "pod-x")
            ),
            {12: [says("12m 0s", "pod-x")]},
        ),
    ]


def _takes_nothing() -> list[Case]:
    alert = "ComputeKernelStoreTakesNothing"

    def says(number: int) -> Alert:
        return of_layer(f"the store of shop/prices took none of {number} artifacts of numba")

    return [
        Case(
            alert,
            "fires when five artifacts in an hour were not taken",
            trips([*silence(5), *rising(1, 1, 20)], stored="false"),
            {9: [], 10: [says(5)], 20: [says(15)]},
        ),
        Case(
            alert,
            "is silent when the store took some, when there is none, and for few",
            _merged(
                trips(rising(0, 5, 20), stored="false"),
                trips(level(1, 20), stored="true"),
                trips(rising(0, 5, 20), runtime="jax"),
                trips(level(4, 20), stored="false", runtime="triton"),
            ),
            {15: [], 19: []},
        ),
        Case(
            alert,
            "short-lived: fires for jobs that export once",
            _merged(*(trips([*silence(5 * n), 2], stored="false", instance=f"job-{n}") for n in range(3))),
            {10: [], 11: [says(6)]},
        ),
        Case(
            alert,
            "restart: adds up what was not taken before and after",
            trips([*level(3, 10), *level(2, 10)], stored="false"),
            {9: [], 11: [says(5)], 80: []},
        ),
        Case(
            alert,
            "many pods: is silent when one of them has written the shared store for all",
            _merged(
                *(trips(level(1, 10), stored="false", instance=f"pod-{each}") for each in range(99)),
                trips(level(1, 10), stored="true", instance="pod-99"),
            ),
            {5: [], 9: []},
        ),
        Case(
            alert,
            "many pods: fires when none of them could write it",
            _merged(*(trips(level(1, 10), stored="false", instance=f"pod-{each}") for each in range(100))),
            {5: [says(100)]},
        ),
    ]


def _points(
    state: str, values: list[float | None], instance: str = "pod-1", job: str = "shop/prices"
) -> Series:
    labels = {"compute_kernel_runtime": "triton", "compute_kernel_instrumentation_state": state}
    return {series(POINTS, job=job, instance=instance, **labels): values}


def _refused_and_missing() -> list[Case]:
    def says(number: int, said: str) -> Alert:
        return Alert(
            f"{number} processes of shop/prices run a triton that {said}",
            {"job": "shop/prices", "compute_kernel_runtime": "triton"},
        )

    cases: list[Case] = []
    for alert, state, said in (
        ("ComputeKernelRuntimeNotInstrumented", "refused", "is not instrumented"),
        ("ComputeKernelPointsMissing", "missing", "lacks points of its instrumentor"),
    ):
        cases += [
            Case(alert, "fires at once", _points(state, level(1, 20)), {0: [says(1, said)]}),
            Case(
                alert,
                "is silent when all points are patched",
                _merged(_points("patched", level(9, 20)), _points("missing", level(0, 20))),
                {0: [], 19: []},
            ),
            Case(
                alert,
                "short-lived: tells for a quarter of an hour of a job that exports once",
                _points(state, [*silence(5), 1]),
                {5: [says(1, said)], 20: [says(1, said)], 21: []},
            ),
            Case(
                alert,
                "restart: stops a quarter of an hour after a release that is whole again",
                _merged(
                    _points(state, level(1, 10), "pod-1"),
                    _points("patched", [*silence(10), *level(9, 30)], "pod-2"),
                ),
                {10: [says(1, said)], 23: [says(1, said)], 25: []},
            ),
            Case(
                alert,
                "many pods: counts them",
                _merged(*(_points(state, level(2, 5), f"pod-{each}") for each in range(100))),
                {3: [says(100, said)]},
            ),
        ]
    return cases


def _silent() -> list[Case]:
    alert = "ComputeKernelInstrumentationSilent"
    summary = "still sends metrics, but none of its instrumentors of kernels any more"
    says = Alert(f"shop/prices {summary}", {"job": "shop/prices"})

    def alive(values: list[float | None], instance: str = "pod-1") -> Series:
        return {series("target_info", job="shop/prices", instance=instance): values}

    return [
        Case(
            alert,
            "fires half an hour after a release that has no instrumentor",
            _merged(
                alive(level(1, HOUR), "old"),
                _points("patched", level(9, HOUR), "old"),
                alive([*silence(HOUR), *level(1, 2 * HOUR)], "new"),
            ),
            {70: [], 100: [says], 170: [says]},
        ),
        Case(
            alert,
            "is silent for a service that never had one, and for one that has it",
            _merged(alive(level(1, 2 * HOUR)), _points("patched", level(9, 2 * HOUR), job="shop/stock")),
            {50: [], 110: []},
        ),
        Case(
            alert,
            "short-lived: is silent when a job is over",
            _merged(alive([1, 1]), _points("patched", [9, 9])),
            {1: [], 40: [], 90: []},
        ),
        Case(
            alert,
            "restart: is silent while a new process has not imported its runtime yet",
            _merged(
                alive(level(1, HOUR)),
                _points("patched", [*level(9, 30), *silence(20), *level(9, 10)]),
            ),
            {45: [], 58: []},
        ),
        Case(
            alert,
            "many pods: is silent while one of them has it",
            _merged(
                *(alive(level(1, 2 * HOUR), f"pod-{each}") for each in range(100)),
                *(_points("patched", level(9, 20), f"pod-{each}") for each in range(99)),
                _points("patched", level(9, 2 * HOUR), "pod-99"),
            ),
            {60: [], 110: []},
        ),
    ]


def _instance() -> list[Case]:
    alert = "ComputeKernelInstanceMissing"
    says = Alert("shop/prices sets no service.instance.id", {"job": "shop/prices"})
    return [
        Case(alert, "fires without an instance", trips(level(1, 5), instance=""), {0: [says]}),
        Case(alert, "is silent with one", trips(level(1, 5)), {0: [], 4: []}),
        Case(
            alert,
            "short-lived: fires for five minutes after the only export",
            trips([1], instance=""),
            {4: [says], 6: []},
        ),
        Case(
            alert,
            "restart: stops when the next release sets it",
            _merged(trips(level(1, 5), instance=""), trips([*silence(5), *level(1, 10)])),
            {4: [says], 11: []},
        ),
        Case(
            alert,
            "many pods: is silent when each has its own",
            _merged(*(trips(level(1, 5), instance=f"pod-{each}") for each in range(100))),
            {3: []},
        ),
    ]


CASES: Final = [
    *_serving(),
    *_slow(),
    *_failing(),
    *_collapsed(),
    *_storm(),
    *_in_flight(),
    *_takes_nothing(),
    *_refused_and_missing(),
    *_silent(),
    *_instance(),
]

KINDS: Final = ("short-lived: ", "restart: ", "many pods: ")
"""How the names of the cases begin that every alert has to have."""
