"""How a summary reads where there is no terminal."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from written_trips import write_otlp, write_recording

from otel_kernel import semconv
from otel_kernel.report.console import PLAIN_WIDTH
from otel_kernel.report.opening import opened
from otel_kernel.report.render import SHOWN_KERNELS, print_summary
from otel_kernel.report.summary import summarize
from otel_kernel.report.words import count, duration, moment, safe, share, size
from report.shop import BEFORE, COMPILED, LATEST, LOADED, WEB, WORKER, a_trip, key

SHOP = """\
Run 22222222222222222222222222222222, 2 processes, 2023-11-14 22:13:20 UTC
14 trips: 6 compiled, 4 loaded, 1 rekeyed, 1 failed, 1 abandoned, 1 unfinished
Time spent: 1.44 s (overlaps in a process counted once, processes added)
Time saved by the store: 300 ms, unknown for 1 of 3 loaded trips (33%)

numba: 13 trips, 40% loaded, 1.44 s spent, 300 ms saved
  own time  loaded  trips                    kernel
    590 ms      0%  1 compiled, 1 rekeyed    shop.price
    400 ms    100%  1 loaded                 shop.stock
    250 ms      0%  1 compiled               shop.tax
    100 ms    100%  1 loaded                 shop.strange
   60.0 ms    100%  1 loaded                 shop.quick
   55.0 ms      0%  1 compiled, 1 abandoned  shop.cents
   20.0 ms    100%  1 loaded                 shop.quick.inner
   5.00 ms       -  1 failed                 shop.broken
      0 ns       -  1 unfinished             shop.slow
    160 ms      0%  2 compiled               2 internal functions of numba

numba.gufunc: 1 trip, 0% loaded, 100 ms spent
  own time  loaded  trips       kernel
    100 ms      0%  1 compiled  shop.round

Failed (1)
  shop.broken
    numba.core.errors.TypingError at /srv/shop/pricing.py:41 (pid 100)

Unfinished (1)
  shop.slow
    started AGE ago (pid 4194305): whether the process lives cannot be
    seen from here
"""


def printed(path: Path, run: str | None = None) -> str:
    """Return the report about a run or all of an INPUT, as plain text."""
    output = io.StringIO()
    with opened(path, print) as recording:
        print_summary(summarize(recording.connection, run), output)
    return output.getvalue()


def test_the_summary_of_a_run_reads_like_this(tmp_path: Path) -> None:
    text = printed(write_recording(tmp_path / "r.db", (*BEFORE, *LATEST)), "2" * 32)

    assert SHOP == re.sub(r"started \d+ d \d+ h ago", "started AGE ago", text)


def test_reasons_read_like_this(tmp_path: Path) -> None:
    parts = dict.fromkeys(
        ("base_name", "bytecode", "closure", "cpu", "options", "signature", "source_digest", "triple"), "x"
    )

    def attributes(**changes: str) -> dict[str, str | int | bool]:
        return {semconv.KEY_COMPONENT + name: value for name, value in {**parts, **changes}.items()}

    first = a_trip(WEB, 0, "shop.price", 0, 10, COMPILED, key=key(1), attributes=attributes(source_stamp="1"))
    again = a_trip(WEB, 1, "shop.price", 1, 10, COMPILED, key=key(2), attributes=attributes(source_stamp="2"))
    other = a_trip(
        WORKER,
        0,
        "shop.price",
        2,
        1,
        LOADED,
        key=key(2),
        attributes=attributes(source_stamp="2", options="y"),
    )
    unexplained = a_trip(
        WORKER, 1, "shop.tax", 3, 1, COMPILED, key=key(4), attributes=attributes(source_stamp="1")
    )
    text = printed(
        write_recording(
            tmp_path / "r.db", [first, again, other, replace(unexplained, seq=2, key=key(5)), unexplained]
        )
    )

    assert (
        """
Compiled again, and why
  shop.tax
    1 trip: nothing has changed: no known part of the key differs
  shop.price
    1 trip: nothing has changed: source stamp (1 -> 2); only the time stamp of
    the source differs; 8 parts equal

Loaded, and not the same
  shop.price
    1 trip: loaded although it was made with something else: options (x -> y); 8
    parts equal
"""
        in text
    )


def test_no_line_is_longer_than_80_columns_and_no_name_is_cut(tmp_path: Path) -> None:
    name = "shop." + "deep." * 40 + "price"
    trips = [a_trip(WEB, 0, name, 0, 1, COMPILED), a_trip(WEB, 1, name, 0, 1, error_type="E" * 200)]

    text = printed(write_otlp(tmp_path / "spans.jsonl", trips))

    assert PLAIN_WIDTH >= max(map(len, text.splitlines()))
    assert name in re.sub(r"\s", "", text)
    assert "E" * 200 in re.sub(r"\s", "", text)


def test_no_line_ends_in_blanks_and_there_are_no_colours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")

    text = printed(write_recording(tmp_path / "r.db", LATEST))

    assert "\x1b" not in text
    assert [] == [line for line in text.splitlines() if line != line.rstrip()]


def test_names_cannot_act_on_a_terminal_or_as_markup(tmp_path: Path) -> None:
    trips = [a_trip(WEB, 0, "\x1b[31mred\n[bold]x[/bold] :smile:", 0, 1, COMPILED)]

    text = printed(write_recording(tmp_path / "r.db", trips))

    assert "\\x1b[31mred\\n[bold]x[/bold] :smile:" in text


def test_kernels_beyond_the_first_are_folded(tmp_path: Path) -> None:
    trips = [a_trip(WEB, seq, f"shop.k{seq}", 0, 10, COMPILED) for seq in range(SHOWN_KERNELS + 3)]

    text = printed(write_recording(tmp_path / "r.db", trips))

    assert "   30.0 ms      0%  3 compiled  3 more kernels\n" in text


def test_saved_time_that_is_wholly_unknown_is_not_zero(tmp_path: Path) -> None:
    text = printed(write_recording(tmp_path / "r.db", [a_trip(WEB, 0, "k", 0, 1, LOADED)]))

    assert "Time saved by the store: unknown, no compilation of 1 loaded trip is at hand\n" in text
    assert "0 ns saved" not in text


def test_saved_time_says_where_it_is_known_from(tmp_path: Path) -> None:
    remembering = {semconv.ORIGINAL_NS: 2_000_000_000}
    trips = [
        a_trip(WEB, 0, "k", 0, 500, LOADED, key=key(1), attributes=remembering),
        a_trip(WEB, 1, "k", 1000, 1, LOADED),
    ]
    said = re.sub(r"\s+", " ", printed(write_recording(tmp_path / "r.db", trips)))

    assert (
        "Time saved by the store: 1.50 s, 1 of 2 loaded trips by what the artifact remembers, unknown for 1 of 2 "
        "loaded trips (50%)" in said
    )


def test_nothing_is_said_to_be_nothing(tmp_path: Path) -> None:
    assert "No trips.\n" == printed(write_otlp(tmp_path / "spans.jsonl", ()))


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (9_994, "9.99 µs"),
        (9_996, "10.0 µs"),
        (99_960, "100 µs"),
        (999_400, "999 µs"),
        (999_600, "1.00 ms"),
        (1_234_567_890, "1.23 s"),
        (59_400_000_000, "59.4 s"),
        (59_600_000_000, "1 min 00 s"),
        (3_599_600_000_000, "1 h 00 min"),
        (90_000_000_000_000, "1 d 01 h"),
    ],
)
def test_times_are_read_with_three_digits(ns: int, text: str) -> None:
    assert text == duration(ns)


def test_words() -> None:
    assert ("-", "0%", "33%", "100%") == (share(None), share(0.0), share(1 / 3), share(1.0))
    assert ("1 trip", "2 trips", "0 processes") == (
        count(1, "trip"),
        count(2, "trip"),
        count(0, "process", "processes"),
    )
    assert "9223372036854775807000 ns" == moment(2**63 * 1000 - 1000)
    assert "a\\x1b\\n\\u2028b\té" == safe("a\x1b\n\u2028b\té", keep="\t")


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536 * 1024, "1.5 MiB"), (5 * 1024**4, "5.0 TiB")],
)
def test_sizes_are_in_the_largest_unit_that_leaves_one(number: int, text: str) -> None:
    assert text == size(number)
