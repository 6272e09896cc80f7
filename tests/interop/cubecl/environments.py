"""Environments that real CubeCL programs wrote, and copies of them with a row changed."""

from __future__ import annotations

import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import cbor2

FIXTURES: Final = Path(__file__).parent / "fixtures"

NAMES: Final = sorted(path.name.removesuffix(".tar.gz") for path in FIXTURES.glob("*.tar.gz"))
"""`<version of CubeCL>-<level>` of all of them."""

FULL: Final = "0.12.0-pre.1-full"


def unpacked(name: str, folder: Path) -> Path:
    """Return the environment of that name, unpacked as its program left it: the database beside its log."""
    with tarfile.open(FIXTURES / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "shop.db"


def standalone(name: str, folder: Path) -> Path:
    """Return a copy of an environment in one file, for SQLite to change."""
    path = unpacked(name, folder)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return path


def execute(path: Path, statement: str, *values: object) -> None:
    """Change a standalone environment."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement, values)
        connection.commit()


def rows(path: Path, kind: str) -> list[tuple[bytes, Any]]:
    """Return key and decoded value of all rows of a kind in a standalone environment."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT key, value FROM entries WHERE namespace = ?", (f"records/v1/{kind}",)
        ).fetchall()
    return [(key, cbor2.loads(value)) for key, value in found]
