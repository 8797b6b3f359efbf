"""The vocabulary: values that travel between rooms. No behaviour beyond what a value can say of itself.

What a list holds by the ten thousand (`SessionRef`, `Summary`) is a msgspec Struct: the catalogue reads it back
without a line of Python per session. The others are no dataclasses either, as these take their time at every start.
"""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field


class Severity(IntEnum):
    """How bad a problem is; the worst one is the health of the session.

    note: nothing is wrong, but worth knowing.
    cosmetic: stray bytes, yet no record is missing or hidden.
    hides_data: something is there that an ordinary reader will not show.
    stops_resume: the agent that owns the session will refuse it, or start from an older copy.
    lost_data: a record is gone, wholly or in part.
    """

    note = 1
    cosmetic = 2
    hides_data = 3
    stops_resume = 4
    lost_data = 5


class Problem(NamedTuple):
    """One thing that is not as it should be, and where.

    Attributes:
        code: stable snake_case word (``torn_tail``, ``bad_json``, …; docs/formats/amplifier.md lists them).
        severity: how bad it is.
        path: the file.
        line: line number, from 1; None where the whole file is meant.
        byte: offset of the first byte concerned, from 0.
        message: one sentence for a person.
        repair: what would heal it, in words or as a command; None when nothing needs doing.
        span: number of bytes concerned.
    """

    code: str
    severity: Severity
    path: str
    line: int | None
    byte: int | None
    message: str
    repair: str | None = None
    span: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON, with the severity as its word."""
        return {**self._asdict(), "severity": self.severity.name}


def health(problems: list[Problem]) -> str:
    """The worst severity among the problems as a word, or ``ok``."""
    return max(problem.severity for problem in problems).name if problems else "ok"


class Record(NamedTuple):
    """One readable JSON object of a line file, and where it lies.

    Attributes:
        value: the decoded object.
        line: line number, from 1.
        byte: offset of its first byte.
        raw: its bytes without the newline.
    """

    value: dict[str, Any]
    line: int
    byte: int
    raw: bytes


class SessionRef(Struct, frozen=True, array_like=True, gc=False):
    """Where one session lies: which layout, which project, which id, which folder.

    The folder is text, because a list of ten thousand sessions makes as many of these and asks few for a path.
    """

    kind: str
    session_id: str
    folder: str
    project: str | None = None

    @property
    def path(self) -> Path:
        """The folder as a path."""
        return Path(self.folder)


class Summary(Struct, frozen=True, array_like=True, gc=False):
    """What a list shows of one session. Times are UTC; None where the session does not say.

    `listed` is False for what lies among the sessions and is none of them: no list shows it, `check` reports it.
    """

    ref: SessionRef
    agent: str
    title: str | None
    parent: str | None
    messages: int
    turns: int
    turn_count: int | None
    created: datetime | None
    updated: datetime | None
    size: int
    health: str
    problems: list[Problem] = field(default_factory=list)
    listed: bool = True


class Cursor(Struct, frozen=True):
    """How far a reader has come in one file: the file's identity, and the offset of the next unread byte."""

    device: int
    inode: int
    offset: int


class Entry(Struct, frozen=True):
    """One record of a session in reading order, with the cursor that resumes after it."""

    index: int
    record: Record
    after: Cursor
