"""The OTLP endpoints that are set here, and whether they answer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from otel_kernel.doctor.findings import Area, Fact, Finding, State
from otel_kernel.options import VARIABLE_PREFIX

GRPC: Final = "grpc"
HTTP: Final = "http/protobuf"

_OURS: Final = VARIABLE_PREFIX + "OTLP"
_DEFAULTS: Final = {GRPC: "http://localhost:4317", HTTP: "http://localhost:4318"}

USUAL: Final = {4317: GRPC, 4318: HTTP}
"""The protocol that a port usually has."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where spans are to be exported to."""

    url: str
    """Without a scheme, as gRPC allows, TLS is meant."""
    protocol: str
    told_by: str
    """The option or variable that names it."""
    headers: Mapping[str, str]
    certificate: str | None
    """File with the certificates to trust."""

    @property
    def host(self) -> str:
        """The host."""
        return self._parts[1]

    @property
    def port(self) -> int:
        """The port."""
        return self._parts[2] or (443 if self.is_secure else 80)

    @property
    def path(self) -> str:
        """The path of a request over HTTP."""
        return urlsplit(self.url).path or "/"

    @property
    def is_secure(self) -> bool:
        """Whether it speaks TLS."""
        return self._parts[0] != "http"

    @property
    def _parts(self) -> tuple[str, str, int | None]:
        parts = urlsplit(self.url if "://" in self.url else f"//{self.url}")
        return parts.scheme, parts.hostname or "", parts.port


def look(otlp: str | None) -> Iterator[Finding]:
    """Yield a finding for each endpoint.

    Args:
        otlp: an endpoint to look at instead of those in the environment.
    """
    try:
        endpoints = list(named(otlp, os.environ))
    except ValueError as error:
        yield Finding(Area.ENDPOINT, "otlp", State.ATTENTION, str(error))
        return
    if not endpoints:
        text = "none is set: name one by --otlp or OTEL_EXPORTER_OTLP_ENDPOINT to look at it"
        yield Finding(Area.ENDPOINT, "otlp", State.ABSENT, text)
    for endpoint in endpoints:
        yield _finding(endpoint)


def named(otlp: str | None, environ: Mapping[str, str]) -> Iterator[Endpoint]:
    """Yield the endpoints that are set.

    Args:
        otlp: the only one to look at, or None.
        environ: names others, ours and that of a program's own exporter.

    Raises:
        ValueError: an endpoint is none; the message is one line.
    """
    from opentelemetry.util.re import parse_env_headers

    from otel_kernel.otlp import check_endpoint

    def setting(name: str) -> str | None:
        return environ.get(f"OTEL_EXPORTER_OTLP_TRACES_{name}") or environ.get(f"OTEL_EXPORTER_OTLP_{name}")

    headers = parse_env_headers(setting("HEADERS") or "", liberal=True)
    certificate = setting("CERTIFICATE")
    ours = otlp or environ.get(_OURS)
    if ours:
        protocol, url = check_endpoint(ours)
        yield Endpoint(url, protocol, "--otlp" if otlp else _OURS, headers, certificate)
    if otlp or not (setting("ENDPOINT") or "otlp" in environ.get("OTEL_TRACES_EXPORTER", "")):
        return
    protocol = (setting("PROTOCOL") or GRPC).strip()
    if protocol not in _DEFAULTS:
        known = " or ".join(_DEFAULTS)
        raise ValueError(f"OTEL_EXPORTER_OTLP_PROTOCOL must be {known}, got {protocol!r}")
    told_by, url = "the default", _DEFAULTS[protocol]
    for variable in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        if environ.get(variable):
            told_by, url = variable, environ[variable]
    if protocol == HTTP and told_by != "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":
        url = f"{url.rstrip('/')}/v1/traces"
    endpoint = Endpoint(url, protocol, told_by, headers, certificate)
    if not endpoint.host:
        raise ValueError(f"{told_by} {url!r} has no host: it must be like {_DEFAULTS[protocol]}")
    yield endpoint


def _finding(endpoint: Endpoint) -> Finding:
    from otel_kernel.doctor.exporting import NoAnswerError, NotTriedError, UnreachableError, export_nothing

    name = f"{endpoint.protocol} {endpoint.url}"
    facts: dict[str, Fact] = {"protocol": endpoint.protocol, "told_by": endpoint.told_by, "answers": True}
    try:
        export_nothing(endpoint)
    except NotTriedError as error:
        facts["answers"] = None
        return Finding(Area.ENDPOINT, name, State.NOTE, str(error), 'pip install "otel-kernel[otlp]"', facts)
    except NoAnswerError as error:
        facts["answers"] = False
        usual = USUAL.get(endpoint.port, endpoint.protocol)
        if isinstance(error, UnreachableError):
            advice = f"start a Collector there, or correct {endpoint.told_by}"
        elif usual != endpoint.protocol:
            advice = f"port {endpoint.port} is usually {usual}: correct the protocol or {endpoint.told_by}"
        else:
            advice = f"see what listens there, or correct {endpoint.told_by}"
        return Finding(Area.ENDPOINT, name, State.ATTENTION, str(error), advice, facts)
    return Finding(Area.ENDPOINT, name, State.WELL, "takes exports", None, facts)
