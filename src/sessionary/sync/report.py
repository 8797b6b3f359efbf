"""What a synchronisation did and found, session by session."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from sessionary.errors import Invalid
from sessionary.model import SessionRef
from sessionary.sync.heads import Head
from sessionary.sync.retry import Cost


class SyncStatus(Enum):
    """How a session stands with the other side."""

    IN_STEP = "in step"
    AHEAD = "ahead"
    BEHIND = "behind"
    DIVERGED = "diverged"
    NEVER = "never synced"
    PUSHED = "pushed"
    PULLED = "pulled"
    TRASHED = "trashed"
    HELD_BACK = "held back"
    FAILED = "failed"


class Beside(NamedTuple):
    """A file that there is in two versions.

    Attributes:
        file: its name, relative to the session's folder.
        path: where the version lies that stands.
        other: where the other one lies; None if it is only on the other side.
    """

    file: str
    path: str
    other: str | None


class Where(Enum):
    """Where a version lies that is not carried because it is damaged."""

    HERE = "here"
    REMOTE = "remote"
    ELSEWHERE = "elsewhere"


class Hold(NamedTuple):
    """A version of a file that is not carried, because it is a damaged copy of the one that all devices had.

    Attributes:
        file: its name, relative to the session's folder.
        where: in the file here, on the remote, or on another device.
        why: what is wrong with it, in a sentence.
        path: the file here.
        other: where the refused version of the remote lies; None if that was not fetched.
        is_behind: it was damaged, and is the beginning of the agreed version by now: a pull brings the rest.
    """

    file: str
    where: Where
    why: str
    path: str
    other: str | None = None
    is_behind: bool = False


class Undo(NamedTuple):
    """How to bring back what a push or pull took away: the generation of the session that the remote had before."""

    file: str
    generation: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """One session.

    Attributes:
        session_id: its id.
        project: its project, as all machines call it.
        standing: what became of it, or how it stands.
        note: why, in a sentence; empty where there is nothing to say.
        sibling: the id that what was here goes by now, if it gave way.
        error: what went wrong.
        beside: files of it that a person may want to look at, because there are two versions; told by a status.
        held: versions of its files that are not carried because they are damaged.
        undo: how to bring back lines that are not there any more, if some are not.
    """

    session_id: str
    project: str | None
    standing: SyncStatus
    note: str = ""
    sibling: str | None = None
    error: Exception | None = None
    beside: tuple[Beside, ...] = ()
    held: tuple[Hold, ...] = ()
    undo: Undo | None = None


@dataclass(slots=True)
class Report:
    """One push or pull: what became of each session, and what it cost."""

    outcomes: list[Outcome] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)

    def of(self, *standings: SyncStatus) -> list[Outcome]:
        """The sessions that stand so."""
        return [outcome for outcome in self.outcomes if outcome.standing in standings]


def outcome_of(head: Head, standing: SyncStatus, note: str = "") -> Outcome:
    """What became of the session of a head."""
    return Outcome(head.session, head.project, standing, note)


def joined(first: Report, second: Report) -> Report:
    """Two reports as one."""
    return Report([*first.outcomes, *second.outcomes], first.cost + second.cost)


def is_text(name: str) -> bool:
    """False for a name that has bytes that are not UTF-8."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


def no_text(ref: SessionRef) -> Invalid:
    """The report of a session that cannot be carried: heads are UTF-8, and the names in them too."""
    return Invalid(
        "its name, or that of a file in it, is not UTF-8: it is not carried",
        session=ref.session_id,
        path=ref.path,
        hint="give it a name in UTF-8",
    )
