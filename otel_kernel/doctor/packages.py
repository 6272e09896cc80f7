"""The OpenTelemetry packages: which versions, and whether they go together."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from otel_kernel.doctor.findings import Area, Finding, State

_OURS: Final = "otel-kernel"
_PREFIX: Final = "opentelemetry-"
_API: Final = "opentelemetry-api"
_SDK: Final = "opentelemetry-sdk"
_INSTRUMENTATION: Final = "opentelemetry-instrumentation"

_SHOWN: Final = (_API, _SDK, _INSTRUMENTATION, "opentelemetry-exporter-otlp", "opentelemetry-distro")
"""Those whose versions users know; the others come with them."""


def look() -> Iterator[Finding]:
    """Yield a finding for the set as a whole, and one for each package that does not go with the others."""
    installed = _installed()
    conflicts = list(_conflicts(installed))
    facts = {name: each.version for name, each in sorted(installed.items()) if name.startswith(_PREFIX)}
    text = ", ".join(
        f"{name.removeprefix(_PREFIX)} {installed[name].version}" for name in _SHOWN if name in installed
    )
    if conflicts:
        yield Finding(Area.OPENTELEMETRY, "set", State.ATTENTION, f"no coherent set: {text}", None, facts)
        yield from conflicts
    elif _SDK in installed:
        yield Finding(Area.OPENTELEMETRY, "set", State.WELL, f"a coherent set: {text}", None, facts)
    else:
        advice = f'for spans of your own or --otlp, pip install "{_OURS}[otlp]"'
        text += "; no SDK, so trips go into recordings only"
        yield Finding(Area.OPENTELEMETRY, "set", State.NOTE, text, advice, facts)


def _installed() -> dict[str, Distribution]:
    """Return the distributions by name; of two with one name the one that is imported."""
    found: dict[str, Distribution] = {}
    for each in distributions():
        name: str | None = each.metadata["Name"]
        if name:  # a folder that an uninstallation has left has none
            found.setdefault(canonicalize_name(name), each)
    return found


def _conflicts(installed: dict[str, Distribution]) -> Iterator[Finding]:
    for name, distribution in sorted(installed.items()):
        if name != _OURS and not name.startswith(_PREFIX):
            continue
        for requirement in _requirements(distribution):
            wanted = installed.get(canonicalize_name(requirement.name))
            if wanted is None:
                text = f"{distribution.version} needs {requirement}, and it is not installed"
            elif not requirement.specifier.contains(wanted.version, prereleases=True):
                text = f"{distribution.version} needs {requirement}, and {wanted.version} is installed"
            else:
                continue
            advice = _advice(requirement, installed)
            yield Finding(Area.OPENTELEMETRY, name, State.ATTENTION, text, advice)


def _requirements(distribution: Distribution) -> Iterator[Requirement]:
    """Yield what a distribution needs here, without extras."""
    for line in distribution.requires or ():
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement


def _advice(requirement: Requirement, installed: dict[str, Distribution]) -> str:
    wanted = f'pip install "{requirement}"'
    if canonicalize_name(requirement.name) == _INSTRUMENTATION:
        return f"{wanted}: all its releases are betas, and pip takes the old 0.48b0 unless one is named"
    if requirement.name.startswith(_PREFIX) and _API in installed:
        return f"{wanted}, or packages of one release: {_pair(installed[_API].version)}"
    return wanted


def _pair(api: str) -> str:
    """Return which versions were released together, such as 1.45 and 0.66b."""
    major, minor, *_ = api.split(".")
    return f"{major}.{minor} of api, sdk and exporters goes with 0.{int(minor) + 21}b of instrumentation and distro"
