"""Asks the shipped JSON Schemas."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator

_FOLDER = files("otel_kernel") / "schemas"

NAMES = sorted(each.name.removesuffix(".schema.json") for each in _FOLDER.iterdir())
"""Of all that are shipped: `trip`, and what commands print."""


def schema(name: str) -> Any:
    """Return a shipped schema."""
    return json.loads((_FOLDER / f"{name}.schema.json").read_text("utf-8"))


@cache
def _validator(name: str) -> Any:
    Draft202012Validator.check_schema(schema(name))
    return Draft202012Validator(schema(name))


def errors(name: str, data: object) -> list[str]:
    """Return what of `data` is not as the schema says."""
    return [f"{error.json_path}: {error.message}" for error in _validator(name).iter_errors(data)]
