"""Why a kernel was compiled, in words for people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from otel_kernel.report.components import Kind, Part
from otel_kernel.report.why import Reason, Why
from otel_kernel.report.words import count, safe

PHRASES: Final = {
    Reason.FIRST: "no earlier trip of it is at hand",
    Reason.BUILD: "another compiler or build",
    Reason.TARGET: "for other hardware",
    Reason.SPECIALIZATION: "for other types, shapes or constants",
    Reason.SOURCE: "other code",
    Reason.OPTION: "other options",
    Reason.ENVIRONMENT: "other environment variables",
    Reason.STORE_LOCATION: "another store",
    Reason.STORE_OFF: "the store was not asked",
    Reason.NEVER_STORED: "the store had not taken it",
    Reason.DAMAGED: "the entry in the store was damaged",
    Reason.LOST: "the store held it before and no more",
    Reason.CONCURRENT: "it was still being compiled elsewhere",
    Reason.EXCESS: "nothing has changed",
    Reason.OTHER_ARTIFACT: "loaded although it was made with something else",
    Reason.UNKNOWN: "not known",
}
"""What each reason is called."""

_LONGEST: Final = 60
"""Signs of the two values of a part up to which they are shown."""

_DIGEST: Final = re.compile(r"[0-9a-f]{16,}")
_WORD: Final = re.compile(r"[^\s,;]+")


def sentence(why: Why) -> str:
    """Return all of a reason in one line."""
    line = ", ".join(_phrases(why))
    shown = parts(why)
    if shown:
        line += f": {', '.join(map(part_text, shown))}"
    if why.detail:
        line += f"{';' if shown else ':'} {safe(why.detail)}"
    return f"{line}; {count(len(why.equal), 'part')} equal" if shown and why.equal else line


def group(why: Why) -> str:
    """Return the same without values, so that trips with like reasons have like texts."""
    line = ", ".join(_phrases(why))
    shown = parts(why)
    if shown:
        return f"{line}: {', '.join(_spaced(part.name) for part in shown)}"
    return f"{line}: {safe(why.detail)}" if why.detail else line


def parts(why: Why) -> Sequence[Part]:
    """Return the parts that explain it, without those that only follow from others."""
    kinds = why.kinds
    shown = [part for part in why.differing if part.kind in kinds and not part.follows]
    shown = [part for part in shown if part.kind is not Kind.STAMP] or shown
    return shown or why.differing


def part_text(part: Part) -> str:
    """Return a part that differs, with its values if they can be read."""
    before, after = part.before, part.after
    name = _spaced(part.name)
    if before is not None and after is not None:
        before, after = _differing_words(before, after)
    shown = [safe(value) if value else "none" for value in (before, after)]
    if any(map(_DIGEST.search, shown)) or sum(map(len, shown)) > _LONGEST:
        return name
    return f"{name} ({' -> '.join(shown)})"


def _phrases(why: Why) -> list[str]:
    first = PHRASES[why.reason]
    others = [PHRASES[Reason(kind.value)] for kind in why.kinds[1:] if kind.value in _REASONS]
    return [first] if why.reason is Reason.OTHER_ARTIFACT else [first, *others]


_REASONS: Final = frozenset(reason.value for reason in Reason)


def _differing_words(before: str, after: str) -> tuple[str, str]:
    """Return the middle of two texts, without the words with which both begin and end."""
    ones, twos = list(_WORD.finditer(before)), list(_WORD.finditer(after))
    start = 0
    while start < min(len(ones), len(twos)) and ones[start][0] == twos[start][0]:
        start += 1
    end = 0
    while end < min(len(ones), len(twos)) - start and ones[-1 - end][0] == twos[-1 - end][0]:
        end += 1
    return _between(before, ones, start, end), _between(after, twos, start, end)


def _between(text: str, words: Sequence[re.Match[str]], start: int, end: int) -> str:
    middle = words[start : len(words) - end]
    return text[middle[0].start() : middle[-1].end()] if middle else ""


def _spaced(name: str) -> str:
    return safe(name).replace("_", " ")
