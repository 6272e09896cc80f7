"""The tables in README and docs are what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from otel_kernel import semconv
from otel_kernel.cli.errors import EXIT_CODES
from otel_kernel.instrumentors.numba import NumbaInstrumentor
from otel_kernel.recording import schema

ROOT = Path(__file__).parents[2]
PLACES = "before\n<!-- generated:{name} -->\n<!-- /generated -->\nafter\n"


def generate(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page with the table of attributes, up to date."""
    path = tmp_path / "page.md"
    path.write_text(PLACES.format(name="attributes"))
    done = generate(path)
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
    return path


def test_the_committed_tables_are_up_to_date() -> None:
    done = generate("--check")

    assert 0 == done.returncode, done.stdout + done.stderr


def test_a_table_replaces_what_was_between_its_markers_and_nothing_else(page: Path) -> None:
    text = page.read_text()
    lines = text.splitlines()

    assert text.startswith("before\n<!-- generated:attributes -->\n")
    assert text.endswith("<!-- /generated -->\nafter\n")
    assert 0 == generate(page).returncode
    assert text == page.read_text()
    for name in (*semconv.ATTRIBUTES, *(f"{prefix}<name>" for prefix in semconv.FAMILIES)):
        assert 1 == sum(line.startswith(f"| `{name}` |") for line in lines), name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("record-attributes", list(semconv.RECORD_ATTRIBUTES)),
        ("metrics", list(semconv.METRICS)),
        ("events", list(semconv.EVENTS)),
        ("support", [NumbaInstrumentor.requires, 'pip install "otel-kernel[numba]"', "Numba"]),
        ("runtime-numba", [NumbaInstrumentor.requires, "`kernel_numba`", "- layer: `numba` for functions"]),
        (
            "recording",
            ["- `texts`: kernel texts", *(f"| `{name}` |" for name in schema.ATTRIBUTE_COLUMNS.values())],
        ),
        ("commands", ["[`diff`](#diff)", "[`run`](#run)", "[`show`](#show)"]),
        ("exit-codes", [each.meaning for each in EXIT_CODES]),
        ("options-diff", ["otel-kernel diff [INPUT [INPUT]]", "`--exit-code`", "By default `25`."]),
        (
            "example-report",
            ["$ otel-kernel report", "\n    609 ms    100%  1 loaded    shop.pricing.total\n"],
        ),
        ("attributes", [value for each in semconv.ATTRIBUTES.values() for value in each.values]),
    ],
)
def test_each_table_says_what_the_code_declares(tmp_path: Path, name: str, expected: list[str]) -> None:
    path = tmp_path / "page.md"
    path.write_text(PLACES.format(name=name))
    generate(path)

    assert [] == [part for part in expected if part not in path.read_text()]


def test_check_shows_what_differs_and_changes_nothing(page: Path) -> None:
    stale = page.read_text().replace("| `compute.kernel.layer` | str |", "| `compute.kernel.layer` | int |")
    page.write_text(stale)
    done = generate("--check", page)

    assert 1 == done.returncode
    assert stale == page.read_text()
    assert "-| `compute.kernel.layer` | int |" in done.stdout
    assert "+| `compute.kernel.layer` | str |" in done.stdout
    assert "python docs/generate.py" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "\n<!-- generated:attribute -->\n<!-- /generated -->\n",
            ":2: no table is named attribute; there are",
        ),
        (
            "<!-- generated:metrics -->\n",
            ":1: the marker of table metrics has no <!-- /generated --> below it",
        ),
    ],
)
def test_a_bad_marker_is_one_line_and_changes_nothing(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "page.md"
    path.write_text(text)
    done = generate(path)

    assert (2, "") == (done.returncode, done.stdout)
    assert f"{path}{said}" in done.stderr
    assert 1 == len(done.stderr.splitlines())
    assert text == path.read_text()


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    done = generate("--check", tmp_path / "none.md")

    assert (2, "") == (done.returncode, done.stdout)
    assert f"{tmp_path / 'none.md'}: there is no such file\n" == done.stderr
