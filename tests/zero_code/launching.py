"""Starting `opentelemetry-instrument` as a user does, with the SDK's own exporters and an endpoint."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
from otlp.receiver import Arrived, Protocol, Receiver
from otlp.views import attributes_of
from packaging.version import Version
from run.launching import BIN, PYTHON, environment

COMMAND = str(BIN / "opentelemetry-instrument")
PROGRAMS = Path(__file__).parent / "programs"
TESTS = Path(__file__).parents[1]
ACME = TESTS / "core" / "runtime"


def since(oldest: str, what: str) -> pytest.MarkDecorator:
    """Skip a test where opentelemetry-instrumentation is older than the version that brought something."""
    found = version("opentelemetry-instrumentation")
    return pytest.mark.skipif(Version(found) < Version(oldest), reason=f"{found} has no {what}")


CHILDREN = since("0.63b0", "child processes")
ALL_DISABLED = since("0.60b0", "way to disable all")
EVENTS = since("0.59b0", "events")


def exporting_to(receiver: Receiver, protocol: Protocol) -> dict[str, str]:
    """Return the variables that send everything to `receiver`; gRPC is what the command takes by itself."""
    if protocol == "grpc":
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.grpc_port}"}
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.http_port}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    }


def command(
    program: Sequence[str],
    receiver: Receiver,
    *,
    folder: Path,
    flags: Sequence[str] = (),
    protocol: Protocol = "http/protobuf",
    changes: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program of `programs` under `opentelemetry-instrument` in `folder`."""
    name, *arguments = program
    return subprocess.run(
        [COMMAND, *flags, PYTHON, str(PROGRAMS / name), *arguments],
        cwd=folder,
        env=environment({**exporting_to(receiver, protocol), **(changes or {})}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def distribution(site: Path, name: str, version: str = "1.0", **entry_points: str) -> None:
    """Make a distribution in the folder `site`; entry points are given by group, as `name = value`."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    text = "".join(f"[{group}]\n{line}\n" for group, line in entry_points.items())
    (folder / "entry_points.txt").write_text(text)


def acme_site(site: Path) -> dict[str, str]:
    """Install acme and its instrumentor in the folder `site`, and return the variables that make it seen.

    Its instrumentor is to the command what another package's is, and to the core what one of ours is.
    """
    distribution(site, "acme-compiler", "1.2")
    distribution(
        site,
        "acme-plugin",
        opentelemetry_instrumentor="kernel_acme = zero_code.programs.acme_plugin:PluginInstrumentor",
    )
    return {"PYTHONPATH": os.pathsep.join(map(str, (site, ACME, TESTS)))}


def attributes(arrived: Arrived) -> dict[str, object]:
    """Return the attributes of a span as Python's values."""
    return attributes_of(arrived.span.attributes)


def compiled(receiver: Receiver) -> list[str]:
    """Return the names of the trips that arrived, without the words that all have."""
    return [arrived.span.name.rpartition(".")[2] for arrived in receiver.trips]
