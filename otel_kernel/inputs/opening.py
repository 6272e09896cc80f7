"""Opens an INPUT: a recording, files, an environment of CubeCL, standard input, or a backend."""

from __future__ import annotations

import glob
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from otel_kernel.inputs.problems import InputError, Problem
from otel_kernel.inputs.sources import (
    ContentFile,
    CubeclFile,
    RecordingFile,
    Source,
    StandardInput,
    backend_at,
    source_at,
)
from otel_kernel.kinds import Stamped, kind_of
from otel_kernel.mapping import NotATrip
from otel_kernel.recording.errors import RecordingError
from otel_kernel.records import Trip
from otel_kernel.texts import TextFiles

STANDARD_INPUT: Final = "-"


class Input:
    """The trips of an INPUT, each once, and the problems in between; to be iterated over once.

    Of several finished spans of one trip the first counts. An unfinished trip comes at the end, and only if
    no finished one did. Memory grows with the number of trips, by the numbers that identify them only.
    """

    def __init__(self, sources: Sequence[Source | Problem], texts: TextFiles | None = None) -> None:
        """Remember the sources; nothing is read yet.

        Args:
            sources: where the trips are, or why a file is none.
            texts: where to look for texts that a line does not carry whole.
        """
        self._sources = sources
        self._texts = texts
        self.trips = 0
        """Trips so far."""
        self.problems = 0
        """Problems so far."""
        self.duplicates = 0
        """Trips left out so far because they had been there already."""
        self.other_spans = 0
        """Spans so far that are no trips."""
        self.other_records: Counter[str] = Counter()
        """Records so far of other kinds than trips, by kind."""

    @property
    def recording(self) -> Path | None:
        """The recording that the INPUT is, or None if it is of another kind."""
        source = self._sources[0] if len(self._sources) == 1 else None
        return source.path if isinstance(source, RecordingFile) else None

    @property
    def environment(self) -> Path | None:
        """The environment of CubeCL that the INPUT is, or None if it is of another kind."""
        source = self._sources[0] if len(self._sources) == 1 else None
        return source.path if isinstance(source, CubeclFile) else None

    @property
    def size(self) -> int:
        """Bytes of its files of lines, as far as they are known."""
        return sum(source.size for source in self._sources if isinstance(source, ContentFile))

    @property
    def position(self) -> int:
        """Bytes of them read so far."""
        return sum(source.position for source in self._sources if isinstance(source, ContentFile))

    def __iter__(self) -> Iterator[Trip | Problem]:
        for found in self.all():
            if not isinstance(found, Stamped):
                yield found

    def all(self) -> Iterator[Trip | Stamped | Problem]:
        """Iterate over records of other kinds too; instead of iterating over trips alone, and once."""
        finished: dict[str, set[int]] = defaultdict(set)
        unfinished: dict[tuple[str, int], Trip] = {}
        for found in self._read():
            if isinstance(found, Problem):
                self.problems += 1
                yield found
                continue
            seqs = finished[found.session.id]
            if found.seq in seqs:
                self.duplicates += 1
                continue
            if isinstance(found, Stamped):
                self.other_records[kind_of(found.record)] += 1
                seqs.add(found.seq)
                yield found
                continue
            if found.duration_ns is None:
                known = unfinished.setdefault((found.session.id, found.seq), found)
                self.duplicates += known is not found
                continue
            if unfinished and unfinished.pop((found.session.id, found.seq), None) is not None:
                self.duplicates += 1
            seqs.add(found.seq)
            self.trips += 1
            yield found
        for found in unfinished.values():
            self.trips += 1
            yield found

    def _read(self) -> Iterator[Trip | Stamped | Problem]:
        for source in self._sources:
            if isinstance(source, Problem):
                yield source
                continue
            try:
                for found in source.read(self._texts):
                    if isinstance(found, NotATrip):
                        self.other_spans += 1
                    else:
                        yield found
            except (InputError, RecordingError) as error:
                if len(self._sources) == 1:
                    raise
                yield Problem("", str(error))


def open_input(spec: str | Path, *, texts: TextFiles | None = None) -> Input:
    """Open an INPUT.

    Args:
        spec: a recording, a file of OTLP or of JSON lines, an environment of CubeCL, a pattern that matches
            several of these, `-` for such content on standard input, or the URL of a backend.
        texts: where to look for texts that a line does not carry whole.

    Raises:
        InputError: it cannot be read at all. A file among several that cannot be read is a problem.
    """
    if str(spec) == STANDARD_INPUT:
        return Input([StandardInput()], texts)
    backend = backend_at(str(spec))
    if backend is not None:
        return Input([backend], texts)
    path = Path(spec)
    if not path.exists() and any(sign in str(spec) for sign in "*?["):
        paths = sorted(glob.glob(str(spec), recursive=True))  # noqa: PTH207 - also takes absolute patterns
        if not paths:
            raise InputError(f"no file matches {spec}")
        return Input([_source_or_problem(Path(each)) for each in paths], texts)
    return Input([source_at(path)], texts)


def _source_or_problem(path: Path) -> Source | Problem:
    try:
        return source_at(path)
    except InputError as error:
        return Problem("", str(error))
