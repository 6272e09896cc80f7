from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from otel_kernel import semconv
from otel_kernel.recording import schema

GOLDEN = Path(__file__).parent / f"schema_v{schema.USER_VERSION}.sql"


def test_changed_tables_need_a_new_user_version() -> None:
    hint = (
        "the tables differ from those of the recordings with this user_version: raise USER_VERSION and write "
        "schema.DDL to a new golden file"
    )

    assert GOLDEN.read_text() == schema.DDL, hint


def test_every_attribute_of_a_trip_has_its_own_column() -> None:
    columns = [*schema.FIELD_COLUMNS, *schema.ATTRIBUTE_COLUMNS.values(), *schema.LONG_COLUMNS]

    assert list(schema.TRIP_COLUMNS) == columns
    assert len(set(columns)) == len(columns)
    assert semconv.STORE_STORED in schema.ATTRIBUTE_COLUMNS


def test_tables_have_the_columns_that_the_code_names() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema.DDL)
        columns = [row[1] for row in connection.execute("PRAGMA table_info (trips)")]
        sessions = [row[1] for row in connection.execute("PRAGMA table_info (sessions)")]
        declared = {row[1]: row[2] for row in connection.execute("PRAGMA table_info (trips)")}

    assert list(schema.TRIP_COLUMNS) == columns
    assert list(schema.SESSION_COLUMNS) == sessions
    assert "BOOLEAN" == declared["store_stored"]
    assert "INTEGER" == declared["compilation_original_ns"]
    assert "TEXT" == declared["code_function_name"]


def test_header_says_what_the_file_is(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        connection.executescript(schema.DDL)

        assert (schema.APPLICATION_ID,) == connection.execute("PRAGMA application_id").fetchone()
        assert (schema.USER_VERSION,) == connection.execute("PRAGMA user_version").fetchone()


def test_views_count_what_the_tables_hold() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema.DDL)
        connection.executemany(
            "INSERT INTO sessions (id, run, started_ns, host, pid, program) VALUES (?, ?, ?, ?, ?, ?)",
            [
                ("s1", "r1", 10, "h", 1, "a.py"),
                ("s2", "r1", 5, "h", 2, "b.py"),
                ("s3", "r2", 7, "h", 3, "c.py"),
            ],
        )
        connection.executemany(
            "INSERT INTO trips (session, seq, runtime, layer, kernel, started_ns, duration_ns, outcome, "
            "error_type, abandoned) VALUES (?, ?, 'numba', 'numba', ?, ?, ?, ?, ?, ?)",
            [
                ("s1", 0, "k", 10, 3, "compiled", None, None),
                ("s1", 1, "k", 20, 4, "loaded", None, None),
                ("s2", 0, "k", 5, 5, "rekeyed", None, None),
                ("s2", 1, "l", 6, 6, None, "ValueError", None),
                ("s2", 2, "l", 7, 7, None, None, "nested"),
                ("s2", 3, "l", 8, None, None, None, None),
            ],
        )
        runs = connection.execute("SELECT * FROM runs ORDER BY run").fetchall()
        kernels = connection.execute("SELECT * FROM kernels ORDER BY kernel").fetchall()
        records = connection.execute(
            "SELECT run, pid, program, seq FROM records ORDER BY pid, seq"
        ).fetchall()
        failures = connection.execute("SELECT session, seq, error_type FROM failures").fetchall()
        unfinished = connection.execute("SELECT run, session, seq FROM unfinished").fetchall()

    assert [
        ("r1", 5, 24, "h", 2, "b.py", 2, 6, 1, 1, 1, 1, 1, 1),
        ("r2", 7, None, "h", 3, "c.py", 1, 0, 0, 0, 0, 0, 0, 0),
    ] == runs
    assert [
        ("numba", "numba", "k", 3, 1, 1, 1, 0, 0, 0, 12),
        ("numba", "numba", "l", 3, 0, 0, 0, 1, 1, 1, 13),
    ] == kernels
    assert [("r1", 1, "a.py", 0), ("r1", 1, "a.py", 1), ("r1", 2, "b.py", 0)] == records
    assert [("s2", 1, "ValueError")] == failures
    assert [("r1", "s2", 3)] == unfinished
