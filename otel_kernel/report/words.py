"""Numbers and names as people read them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Final

_UNITS: Final = (("s", 1e9), ("ms", 1e6), ("µs", 1e3))
_LONG_UNITS: Final = (("d", 24 * 3600, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1))


def duration(ns: int) -> str:
    """Return a time in ns with three digits, or from a minute on in two units."""
    seconds = round(ns / 1e9)
    for unit, seconds_in_unit, part, seconds_in_part in _LONG_UNITS:
        if seconds >= seconds_in_unit:
            rest = seconds % seconds_in_unit // seconds_in_part
            return f"{seconds // seconds_in_unit} {unit} {rest:02} {part}"
    for unit, size in _UNITS:
        value = ns / size
        if value >= 0.9995:
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    return f"{ns} ns"


def size(number: int) -> str:
    """Return bytes in the largest unit that leaves at least one, with a decimal."""
    value, unit = float(number), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{number} B" if unit == "B" else f"{value:.1f} {unit}"


def share(part: float | None) -> str:
    """Return a share from 0 to 1 in percent, or a dash for None."""
    return "-" if part is None else f"{part:.0%}"


def count(number: int, one: str, many: str | None = None) -> str:
    """Return `1 trip`, `2 trips`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def moment(ns: int) -> str:
    """Return a wall clock time, ns since the Unix epoch, in UTC."""
    try:
        return f"{datetime.fromtimestamp(ns / 1e9, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError):  # beyond the year 9999
        return f"{ns} ns"


def safe(text: str, keep: str = "") -> str:
    r"""Return `text` with `\x1b` and the like for what would act on a terminal, all but the signs to keep."""
    return "".join(each if each.isprintable() or each in keep else ascii(each)[1:-1] for each in text)
