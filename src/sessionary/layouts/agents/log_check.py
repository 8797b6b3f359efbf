"""Checks of the records of a log during the pass that reads its messages, so that no further pass is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sessionary.codec.seen import Duplicates
from sessionary.layouts.files import mended_copy
from sessionary.layouts.jsonl import Stored
from sessionary.model import Message, Problem, Record, SessionRef, Severity, UsageEvent

MOST_REPEATED = 20
"""Repeated records that a check reports one by one."""


class LogCheck:
    """Takes the records of a session as `LogLayout` reads them; agents extend it by what they refuse.

    Args:
        versions: see `LogLayout.versions`.
    """

    def __init__(self, ref: SessionRef, *, versions: bool = False) -> None:
        self.ref: SessionRef = ref
        self._versions = versions
        self._seen = Duplicates(ref.locator)
        self._notes: list[Problem] = []
        self._refused: list[Problem] = []
        self._count = 0

    def passing(self, stored: Iterable[Stored]) -> Iterator[Stored]:
        """The stored records; each is also passed to the check."""
        for found in stored:
            if isinstance(found, Record):
                self.stored(found)
            yield found

    def stored(self, found: Record) -> None:
        """Take the next record of the file."""
        note = self._seen.take(found)
        if note is not None and (note.code == "duplicate_record" or not self._versions):
            self._count += 1
            if self._count <= MOST_REPEATED:
                self._notes.append(note)

    def refuse(self, code: str, severity: Severity, found: Record, words: str) -> None:
        """Report a record that a mended copy of the session lacks or corrects, behind the notes on repetitions."""
        path, remedy = self.ref.locator, mended_copy(self.ref)
        self._refused.append(Problem(code, severity, path, found.line, found.byte, words, remedy))

    def kept(self, found: Record, messages: Sequence[Message | UsageEvent]) -> None:
        """Take the next record of the conversation, in its last version, and the messages that it holds."""

    def problems(self) -> Iterator[Problem]:
        """A note on each of the first records that repeat an earlier one and on the number of the others; refusals."""
        yield from self._notes
        if self._count > MOST_REPEATED:
            words = f"{self._count - MOST_REPEATED:,} more records repeat earlier ones"
            yield Problem.of_file("more_duplicates", Severity.note, self.ref.locator, words, "none needed")
        yield from self._refused
