"""What an input may hold besides trips."""

from __future__ import annotations

from dataclasses import dataclass


class InputError(Exception):
    """An input cannot be read at all; the message is one line: what is wrong, where, and what to do."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of an input that is lost; the rest of the input still counts."""

    where: str
    """The file and the line, `spans.jsonl:12`; empty where the reason says it."""
    reason: str
    is_whole: bool = False
    """Whether it is all of a message that is lost, or all that follows a place in it."""

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}" if self.where else self.reason
