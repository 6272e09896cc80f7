"""The shapes of an environment that otel-kernel knows, all of them and nowhere else.

What CubeCL 0.11.0-pre.4 to 0.12.0-pre.1 write has schema 3.
"""

from __future__ import annotations

from typing import Final

META_TABLE: Final = "meta"
"""`meta (k, v)`: the schema's version under `SCHEMA_KEY`, as text."""

SCHEMA_KEY: Final = "schema_version"

ENTRIES_TABLES: Final = {3: "entries", 4: "cache_entries"}
"""The table `(namespace, key, value, origin)` by the version of the schema."""

OLDEST_SCHEMA: Final = min(ENTRIES_TABLES)
NEWEST_SCHEMA: Final = max(ENTRIES_TABLES)

WRITTEN_SCHEMA: Final = 3
"""What `export --cubecl` writes: the schema of every CubeCL that has been released."""

LOCAL_ORIGIN: Final = 0
"""Value of `origin` for what the environment's own programs wrote; a bundle's entries have 1."""

RECORDS: Final = "records/"
"""Start of the namespaces of records of every version."""

RECORDS_VERSION: Final = "v1"
"""The version of records known: `records/v1/<kind>`."""

SESSIONS: Final = "sessions"
"""The one name below `records/v1/` that is no kind of record."""

DURATION_FIELDS: Final = ("work", "duration")
"""What the duration of a compilation is called: `work` from 0.12 on, `duration` before; both read both."""

WRITTEN_DURATION: Final = "duration"
"""What it is called in what we write, since CubeCL 0.11 reads no other."""


def namespace(name: str) -> str:
    """Return the namespace of a kind of record, or of the sessions."""
    return f"{RECORDS}{RECORDS_VERSION}/{name}"
