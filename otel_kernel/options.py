"""What a user may set, and where it is read from: code wins over configuration over environment."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, make_dataclass, replace
from pathlib import Path
from typing import Any

from otel_kernel.faults import logger
from otel_kernel.mapping import INLINE_LIMIT
from otel_kernel.records import RecordLevel

VARIABLE_PREFIX = "OTEL_KERNEL_"


class OptionError(ValueError):
    """An option has a value it cannot have; the message names both."""


@dataclass(frozen=True, slots=True)
class Options:
    """Process-wide options; each may be set by keyword, by configuration or as `OTEL_KERNEL_<NAME>`."""

    level: str | RecordLevel = RecordLevel.BASIC
    """`off`, `basic` or `full`."""
    inline_limit: int = INLINE_LIMIT
    """Bytes up to which a kernel text is a span attribute."""
    text_files: str | Path | None = None
    """Folder for longer texts; without one only their digests travel."""
    recording: str | Path | None = None
    """File of a recording that takes every trip, whatever the sampler decides."""
    otlp: str | None = None
    """Endpoint that takes every trip through a provider of our own, as `otel_kernel.otlp` reads it."""
    serving_after: float | None = None
    """Seconds after the start of the process from which its phase is `serving`."""
    start_events: bool = False
    """Whether a log event tells of every outermost trip when it starts."""

    def __post_init__(self) -> None:
        levels = ", ".join(level.value for level in RecordLevel)
        try:
            object.__setattr__(self, "level", RecordLevel(self.level))
        except ValueError:
            raise OptionError(f"level must be one of {levels}, got {self.level!r}") from None
        if type(self.inline_limit) is not int or self.inline_limit < 0:
            raise OptionError(f"inline_limit must be an int of bytes from 0, got {self.inline_limit!r}")
        for name in ("text_files", "recording"):
            value = getattr(self, name)
            if value is not None:
                if not isinstance(value, (str, Path)) or not str(value):
                    raise OptionError(f"{name} must be a path, got {value!r}")
                object.__setattr__(self, name, Path(value))
        if self.otlp is not None:
            _check_url(self.otlp)
        after = self.serving_after
        if after is not None and (type(after) not in (int, float) or not 0 <= after < math.inf):
            raise OptionError(f"serving_after must be seconds from 0, got {after!r}")
        if type(self.start_events) is not bool:
            raise OptionError(f"start_events must be true or false, got {self.start_events!r}")


def _check_url(url: object) -> None:
    from otel_kernel.otlp import check_endpoint

    if not isinstance(url, str):
        raise OptionError(f"otlp must be a URL, got {url!r}")
    try:
        check_endpoint(url)
    except ValueError as error:
        raise OptionError(str(error)) from None


NAMES = tuple(sorted(field.name for field in fields(Options)))


def _changed(options: Options, name: str, value: Any) -> Options:
    return replace(options, **{name: value})


def from_environment(environ: Mapping[str, str] = os.environ) -> Options:
    """Return the options that the environment sets; a bad value is logged and its default taken."""
    options = Options()
    for name in NAMES:
        variable = VARIABLE_PREFIX + name.upper()
        text = environ.get(variable, "")
        if not text:
            continue
        try:
            options = _changed(options, name, _parse(name, text))
        except OptionError as error:
            logger.error("%s is ignored: %s", variable, error)
    return options


def _parse(name: str, text: str) -> object:
    if name == "start_events":
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        if name == "inline_limit":
            return int(text)
        return float(text) if name == "serving_after" else text
    except ValueError:
        raise OptionError(f"{name} must be a number, got {text!r}") from None


def merge(options: Options, changes: Mapping[str, object]) -> Options:
    """Return `options` with `changes`; a bad or unknown one is logged and left out."""
    for name, value in changes.items():
        if name not in NAMES:
            _say_unknown(name)
            continue
        try:
            options = _changed(options, name, value)
        except OptionError as error:
            logger.error("option %s is ignored: %s", name, error)
    return options


def _say_unknown(name: str) -> None:
    logger.error("option %s is ignored: the options are %s", name, ", ".join(NAMES))


def _keep(self: object, **options: object) -> None:
    for name in NAMES:
        value = options.pop(name, None)
        # YAML reads a bare `off` as false.
        setattr(self, name, RecordLevel.OFF if name == "level" and value is False else value)
    for name in options:
        _say_unknown(name)


Configuration = make_dataclass(
    "Configuration",
    [(name, Any, None) for name in NAMES],
    init=False,
    namespace={
        "__init__": _keep,
        "__doc__": "The options as a configuration file sets them, None where it does not.",
    },
)
"""What OpenTelemetry's declarative configuration makes of the block of an instrumentor.

It passes on what is not None, and `merge` checks that value by value. With `Options` itself, a block would
set every option that it does not name back to its default, and one bad value would cost the whole block.
"""
