"""Follows a live environment: sends what is new in it, poll by poll, each record once.

What was sent is kept in a file, so that a restart sends nothing again; and if it does, the ids are the same.
A record counts as new by its session and number, so neither pruning nor another environment at the same place
confuses it.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from otel_kernel.cubecl.environment import opened
from otel_kernel.cubecl.snapshot import FileState, state_of
from otel_kernel.inputs.problems import InputError
from otel_kernel.replay.nesting import ENCLOSING_KINDS
from otel_kernel.replay.sending import Sender, SessionToSend, by_session, read_session

HOLD_SECONDS: Final = 5.0
"""By default, how long a record waits for one stamped before it: a mark or a tune around it may go on."""


class Progress:
    """What was sent: `seq` by session, kept in a file."""

    def __init__(self, path: Path | None) -> None:
        """Read the file, if there is one.

        Raises:
            InputError: it holds something else.
        """
        self._path = path
        self.sent: dict[int, set[int]] = {}
        if path is None or not path.exists():
            return
        try:
            self.sent = {
                int(name): _spread(ranges) for name, ranges in json.loads(path.read_text())["sent"].items()
            }
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"{path} does not say what was sent: remove it, and all that the environment holds is sent once more"
            ) from error

    def add(self, session: int, seqs: Iterable[int]) -> None:
        """Remember records as sent."""
        self.sent.setdefault(session, set()).update(seqs)

    def keep_only(self, sessions: Iterable[int]) -> None:
        """Forget all sessions but these: the others were pruned."""
        for gone in self.sent.keys() - set(sessions):
            del self.sent[gone]

    def save(self) -> None:
        """Write the file.

        Raises:
            InputError: it cannot be written.
        """
        if self._path is None:
            return
        text = json.dumps({"sent": {str(session): _folded(seqs) for session, seqs in self.sent.items()}})
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, name = tempfile.mkstemp(dir=self._path.parent, suffix=".tmp")
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
            Path(name).replace(self._path)
        except OSError as error:
            raise InputError(f"{self._path} cannot be written: {error.strerror or error}") from error


def _folded(seqs: Iterable[int]) -> list[list[int]]:
    """Return first and last of each stretch of numbers without a gap."""
    stretches: list[list[int]] = []
    for seq in sorted(seqs):
        if stretches and stretches[-1][1] == seq - 1:
            stretches[-1][1] = seq
        else:
            stretches.append([seq, seq])
    return stretches


def _spread(stretches: Any) -> set[int]:
    return {seq for first, last in stretches for seq in range(int(first), int(last) + 1)}


@dataclass(slots=True)
class Follower:
    """Follows one environment."""

    path: Path
    sender: Sender
    progress: Progress
    say: Callable[[str], None]
    """Called with what goes wrong, once until it changes."""
    hold: float = HOLD_SECONDS
    """Seconds for which a record waits for one stamped before it."""
    _seen: FileState | None = None
    _waiting: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    _said: str = ""

    @property
    def failed(self) -> bool:
        """Whether the last poll did not send what was new."""
        return bool(self._said)

    def poll(self, *, last: bool = False) -> int:
        """Send what is new and return how many records that was.

        Args:
            last: whether no poll follows, so that nothing waits any more.
        """
        try:
            state = state_of(self.path)
            if state == self._seen and not self._waiting:
                return 0
            sent = self._send_new(last)
        except (FileNotFoundError, NotADirectoryError):
            self._tell(f"waiting for {self.path}")
        except OSError as error:
            self._tell(f"{self.path} cannot be read: {error.strerror or error}")
        except InputError as error:
            self._tell(str(error))
        else:
            self._seen = state
            self._said = ""
            return sent
        return 0

    def _tell(self, what: str) -> None:
        if what != self._said:
            self._said = what
            self.say(what)

    def _send_new(self, last: bool) -> int:
        number = 0
        with opened(self.path) as environment:
            for problem in environment.problems:
                self.say(str(problem))
            sessions = by_session(environment.stamps)
            self.progress.keep_only(sessions)
            waiting = set[tuple[int, int]]()
            for session, kinds in sessions.items():
                new, held = self._settled(session, kinds, last)
                waiting |= held
                if not new:
                    continue
                around = {seq for seq, kind in kinds.items() if kind in ENCLOSING_KINDS}
                records, problems = read_session(environment, session, frozenset(new | around))
                for problem in problems:
                    self.say(str(problem))
                self.sender.send(environment, SessionToSend(session, records, frozenset(new)))
                self.progress.add(session, new)
                self.progress.save()
                number += len(new)
            self._waiting = {stamp: since for stamp, since in self._waiting.items() if stamp in waiting}
        return number

    def _settled(
        self, session: int, kinds: dict[int, str], last: bool
    ) -> tuple[set[int], set[tuple[int, int]]]:
        """Return what of a session is to be sent now, and what waits for something stamped before it."""
        sent = self.progress.sent.get(session, set())
        now = time.monotonic()
        new: set[int] = set()
        held: set[tuple[int, int]] = set()
        expected = 0
        for seq in sorted(kinds):
            has_gap = seq != expected
            expected = expected if has_gap else seq + 1
            if seq in sent:
                continue
            since = self._waiting.setdefault((session, seq), now)
            if last or not has_gap or now - since >= self.hold:
                new.add(seq)
            else:
                held.add((session, seq))
        return new, held
