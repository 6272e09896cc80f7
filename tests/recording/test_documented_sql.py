"""Every SQL statement of the documentation answers on a recording of a real program."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from example_trips import a_record, an_unfinished_trip, other_session
from written_trips import write_recording

from otel_kernel import semconv
from otel_kernel.inputs import open_input
from otel_kernel.records import Trip

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("hangs.md", "recording.md")
STATEMENTS = [
    pytest.param(statement, id=f"{page}:{text[: found.start()].count(chr(10)) + 1}")
    for page in PAGES
    for text in [(DOCS / page).read_text()]
    for found in re.finditer(r"^```sql\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for statement in [found[1]]
]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trips of the documentation's examples, and what they have none of."""
    compiled = a_record(
        source="define i32 @f", attributes={semconv.PHASE: "serving"}, session=other_session(1)
    )
    failed = replace(compiled, seq=1, outcome=None, key=None, source=None, error_type="TypingError")
    trips = [
        *(each for each in open_input(DOCS / "trips.jsonl") if isinstance(each, Trip)),
        compiled,
        failed,
        an_unfinished_trip(2, session=other_session(1)),
    ]
    return write_recording(tmp_path_factory.mktemp("documented") / "recording.db", trips)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_documented_statement_finds_rows(recording: Path, statement: str) -> None:
    with closing(sqlite3.connect(f"file:{recording}?mode=ro", uri=True)) as connection:
        rows = connection.execute(statement).fetchall()

    assert rows


def test_every_page_has_statements() -> None:
    found = {str(each.id).partition(":")[0] for each in STATEMENTS}

    assert set(PAGES) == found
