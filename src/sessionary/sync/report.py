"""What a synchronisation did and found, session by session."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from sessionary.sync.calls import Cost
from sessionary.sync.heads import Head


class Standing(Enum):
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
    """

    session_id: str
    project: str | None
    standing: Standing
    note: str = ""
    sibling: str | None = None
    error: Exception | None = None
    beside: tuple[Beside, ...] = ()


@dataclass(slots=True)
class Report:
    """One push or pull: what became of each session, and what it cost."""

    outcomes: list[Outcome] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)

    def of(self, *standings: Standing) -> list[Outcome]:
        """The sessions that stand so."""
        return [outcome for outcome in self.outcomes if outcome.standing in standings]


def outcome_of(head: Head, standing: Standing, note: str = "") -> Outcome:
    """What became of the session of a head."""
    return Outcome(head.session, head.project, standing, note)
