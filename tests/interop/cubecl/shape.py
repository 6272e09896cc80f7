"""The shape of an environment: what its records are made of, whatever their values."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, cast

import cbor2

Shape: TypeAlias = "str | dict[str, Shape] | list[Shape]"


def shape_of(path: Path) -> dict[str, list[Shape]]:
    """Return the different shapes of the records by their namespace, of a copy that nobody writes."""
    shapes: dict[str, list[Shape]] = {}
    with closing(sqlite3.connect(path)) as connection:
        for namespace, key, value in connection.execute(
            "SELECT namespace, key, value FROM entries WHERE namespace LIKE 'records/%' ORDER BY namespace, key"
        ):
            shape: Shape = {"key": _shape(cbor2.loads(key)), "value": _shape(cbor2.loads(value))}
            found = shapes.setdefault(namespace, [])
            if shape not in found:
                found.append(shape)
    return {namespace: sorted(found, key=str) for namespace, found in shapes.items()}


def _is_map(value: object) -> TypeGuard[dict[Any, Any]]:
    return isinstance(value, dict)


def _shape(value: Any) -> Shape:
    if _is_map(value):
        return {str(name): _shape(each) for name, each in value.items()}
    if isinstance(value, list):
        different: list[Shape] = []
        for each in cast("Iterable[Any]", value):
            shape = _shape(each)
            if shape not in different:
                different.append(shape)
        return different
    if value in ("Compiled", "Loaded", "Rekeyed"):
        return str(value)
    return type(value).__name__
