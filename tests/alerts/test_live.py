"""From a real program to an alert: its SDK, the Collector in production, Prometheus, Alertmanager."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from dashboards.test_dashboards import every_expr
from run.launching import PYTHON, environment
from servers.collector import Collector
from servers.debian import alertmanager_missing, binary
from servers.monitoring import Alertmanager, Prometheus
from servers.needing import need
from servers.process import free_ports
from servers.production import PRODUCTION, certificate
from servers.waiting import eventually
from zero_code.launching import COMMAND

PROGRAM: Final = Path(__file__).parent / "programs" / "serve.py"

LABELS: Final = {"job": "shop/prices", "compute_kernel_runtime": "numba", "compute_kernel_layer": "numba"}


@dataclass(frozen=True)
class Stack:
    """What stands behind a program."""

    collector: Collector
    prometheus: Prometheus
    alertmanager: Alertmanager
    client: dict[str, str]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, servers: None) -> Generator[Stack]:
    """All of it, and one program that has run and ended."""
    need(alertmanager_missing())
    folder = tmp_path_factory.mktemp("alerts")
    cert, key = certificate(folder)
    health_port, away = free_ports(2)
    with Alertmanager(folder) as alertmanager, Prometheus(folder, alertmanager) as prometheus:
        variables = {
            "OTELCOL_LISTEN": "127.0.0.1",
            "OTELCOL_CERT": str(cert),
            "OTELCOL_KEY": str(key),
            "OTELCOL_TOKEN": "token",
            "OTELCOL_DATA": str(folder / "data"),
            "JAEGER_ENDPOINT": f"127.0.0.1:{away}",
            "TEMPO_ENDPOINT": f"127.0.0.1:{away}",
            "CLICKHOUSE_ENDPOINT": f"tcp://127.0.0.1:{away}",
            "PROMETHEUS_ENDPOINT": prometheus.remote_write,
        }
        changes = {"extensions": {"health_check": {"endpoint": f"127.0.0.1:{health_port}"}}}
        with Collector(PRODUCTION, folder, changes=changes, variables=variables) as collector:
            client = {
                "OTEL_EXPORTER_OTLP_CERTIFICATE": str(cert),
                "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20token",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"https://127.0.0.1:{collector.http_port}",
            }
            made = Stack(collector, prometheus, alertmanager, client)
            _serve(made, folder)
            yield made


def _serve(stack: Stack, folder: Path) -> None:
    """Run the program, which exports once, when it ends: as short a job as there can be."""
    variables = {
        **stack.client,
        "OTEL_SERVICE_NAME": "prices",
        "OTEL_RESOURCE_ATTRIBUTES": "service.namespace=shop,service.instance.id=pod-1",
        "OTEL_KERNEL_SERVING_AFTER": "0",
    }
    inherited = environment(variables)
    for overlooking in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        inherited.pop(overlooking, None)  # with one, `requests` overlooks the certificate of the exporter
    done = subprocess.run(
        [COMMAND, PYTHON, str(PROGRAM)],
        cwd=folder,
        env=inherited,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (0, "9.0\nbroken\n", "") == (done.returncode, done.stdout, done.stderr)


def _alert(stack: Stack, name: str) -> dict[str, Any]:
    eventually(lambda: name in stack.alertmanager.alerts())
    return stack.alertmanager.alerts()[name]


def test_compile_while_serving_is_an_alert_that_goes_to_the_pager(stack: Stack) -> None:
    alert = _alert(stack, "ComputeKernelCompiledWhileServing")

    assert {"alertname": "ComputeKernelCompiledWhileServing", "severity": "critical", **LABELS} == alert[
        "labels"
    ]
    assert "shop/prices compiled 1 kernels of numba while serving" == alert["annotations"]["summary"]
    assert "active" == alert["status"]["state"]
    assert ["page"] == [receiver["name"] for receiver in alert["receivers"]]


def test_failed_compile_is_an_alert_with_its_error(stack: Stack) -> None:
    alert = _alert(stack, "ComputeKernelCompileFailing")

    error = {"error_type": "numba.core.errors.TypingError"}
    assert {"alertname": "ComputeKernelCompileFailing", "severity": "warning", **LABELS, **error} == alert[
        "labels"
    ]


def test_nothing_else_fires(stack: Stack) -> None:
    for name in ("ComputeKernelCompiledWhileServing", "ComputeKernelCompileFailing"):
        _alert(stack, name)

    assert 2 == len(stack.alertmanager.alerts()), stack.alertmanager.alerts()


def test_metrics_have_the_names_that_the_rules_use(stack: Stack) -> None:
    _alert(stack, "ComputeKernelCompiledWhileServing")

    for name in (
        "compute_kernel_compilation_duration_seconds_count",
        "compute_kernel_compilation_duration_seconds_sum",
        "compute_kernel_compilation_duration_seconds_bucket",
        "compute_kernel_compilation_oldest_active_seconds",
        "compute_kernel_instrumentation_points",
        "target_info",
    ):
        found = stack.prometheus.ask(f'last_over_time({name}{{job="shop/prices", instance="pod-1"}}[1h])')

        assert found, name
    bounds = stack.prometheus.ask(
        "count by (le) (last_over_time(compute_kernel_compilation_duration_seconds_bucket[1h]))"
    )
    assert {"10", "30", "60", "120", "+Inf"} <= {sample["metric"]["le"] for sample in bounds}


@pytest.mark.parametrize("title", every_expr())
def test_query_of_a_dashboard_is_answered(stack: Stack, title: str) -> None:
    _alert(stack, "ComputeKernelCompiledWhileServing")
    empty = "share" in title.lower()  # of so few trips there is none

    assert empty or stack.prometheus.ask(every_expr()[title]), every_expr()[title]


@pytest.fixture
def alertmanager(tmp_path: Path) -> Generator[Alertmanager]:
    need(alertmanager_missing())
    with Alertmanager(tmp_path) as started:
        yield started


def _add(alertmanager: Alertmanager, name: str, **labels: str) -> None:
    given = [f"{label}={value}" for label, value in {"alertname": name, **LABELS, **labels}.items()]
    subprocess.run(
        [binary("amtool"), f"--alertmanager.url={alertmanager.url}", "alert", "add", *given],
        check=True,
        capture_output=True,
    )


MUTED: Final = (
    ("ComputeKernelStoreTakesNothing", "ComputeKernelLoadedShareCollapsed"),
    ("ComputeKernelLoadedShareCollapsed", "ComputeKernelRecompilationStorm"),
    ("ComputeKernelCompiledWhileServing", "ComputeKernelRecompilationStorm"),
    ("ComputeKernelCompiledWhileServing", "ComputeKernelCompileSlow"),
    ("ComputeKernelRuntimeNotInstrumented", "ComputeKernelPointsMissing"),
)


@pytest.mark.parametrize(("cause", "effect"), MUTED)
def test_cause_mutes_its_effect_for_the_same_service_alone(
    alertmanager: Alertmanager, cause: str, effect: str
) -> None:
    _add(alertmanager, cause)
    _add(alertmanager, effect)
    _add(alertmanager, effect, job="shop/stock")

    def states() -> list[tuple[str, str]]:
        command: list[str | Path] = [
            binary("amtool"),
            f"--alertmanager.url={alertmanager.url}",
            "alert",
            "query",
            "-o",
            "json",
        ]
        every = subprocess.run([*command, "--active", "--inhibited"], check=True, capture_output=True).stdout
        return sorted(
            (alert["labels"]["job"], alert["status"]["state"])
            for alert in json.loads(every)
            if alert["labels"]["alertname"] == effect
        )

    eventually(lambda: [("shop/prices", "suppressed"), ("shop/stock", "active")] == states())
    assert [("shop/prices", "suppressed"), ("shop/stock", "active")] == states()
