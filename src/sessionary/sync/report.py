"""Report of a synchronisation, session by session."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from sessionary.errors import Invalid
from sessionary.model import SessionRef
from sessionary.sync.heads import Head, place_of
from sessionary.sync.remote import HeadRecord
from sessionary.sync.retry import Cost
from sessionary.sync.rules import Rules


class SyncStatus(Enum):
    """Status of a session relative to the remote."""

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
    """A file that exists in two versions.

    Attributes:
        file: its path relative to the session's folder.
        path: path of the version in place.
        other: path of the other version; None if it is only on the remote.
    """

    file: str
    path: str
    other: str | None


class Where(Enum):
    """Place of a version that is not synchronised because it is damaged."""

    HERE = "here"
    REMOTE = "remote"
    ELSEWHERE = "elsewhere"


class Hold(NamedTuple):
    """A version of a file that is not synchronised, because it is a damaged copy of the version that all devices had.

    Attributes:
        file: its path relative to the session's folder.
        where: in the local file, on the remote, or on another device.
        why: the damage, in a sentence.
        path: the local file.
        other: path of the refused remote version; None if it was not fetched.
        is_behind: it was damaged, and is a prefix of the agreed version now: a pull restores the rest.
    """

    file: str
    where: Where
    why: str
    path: str
    other: str | None = None
    is_behind: bool = False


class Undo(NamedTuple):
    """How to restore what a push or pull removed: the earlier generation of the session on the remote."""

    file: str
    generation: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome for one session.

    Attributes:
        session_id: its id.
        project: the shared name of its project.
        standing: what was done, or its status.
        note: the reason, in a sentence; empty if there is none.
        sibling: the new id of the local version, if it gave way.
        error: the error.
        beside: its files in two versions that the user may want to compare; set by a status.
        held: versions of its files that are not synchronised because they are damaged.
        undo: how to restore removed lines, if there are any.
        kind: the kind of session, as its layout is called.
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
    kind: str = ""


@dataclass(slots=True)
class Report:
    """Result of a push or pull: the outcome of each session, and the cost."""

    outcomes: list[Outcome] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)

    def of(self, *standings: SyncStatus) -> list[Outcome]:
        """Return the outcomes with these statuses."""
        return [outcome for outcome in self.outcomes if outcome.standing in standings]


def outcome_of(head: Head, standing: SyncStatus, note: str = "") -> Outcome:
    """Return an outcome for the session of a head."""
    return Outcome(head.session, head.project, standing, note, kind=head.kind)


def outcome_for(
    ref: SessionRef,
    project: str | None,
    standing: SyncStatus,
    note: str = "",
    beside: tuple[Beside, ...] = (),
) -> Outcome:
    """Return an outcome for a local session."""
    return Outcome(ref.session_id, project, standing, note, beside=beside, kind=ref.kind)


def joined(reports: Iterable[Report]) -> Report:
    """Return several reports as one."""
    every = list(reports)
    outcomes = [outcome for report in every for outcome in report.outcomes]
    return Report(outcomes, sum((report.cost for report in every), Cost()))


def of_unknown_kinds(
    records: Iterable[HeadRecord], known: Collection[str], rules: Rules
) -> Iterator[Outcome]:
    """Yield the sessions of kinds that only newer versions know, as held back.

    Args:
        records: the heads on the remote.
        known: the known kinds.
        rules: which projects are synchronised.
    """
    for record in records:
        place = place_of(record.data)
        if place is not None and place.kind not in known and rules.admits(place.project):
            note = f"sessions of the kind {place.kind!r} need a newer version of Sessionary"
            yield Outcome(place.session, place.project, SyncStatus.HELD_BACK, note, kind=place.kind)


def is_text(name: str) -> bool:
    """False for a name with bytes that are not UTF-8."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


def no_text(ref: SessionRef) -> Invalid:
    """Return the error of a session that cannot be synchronised: heads and the names in them are UTF-8."""
    return Invalid(
        "its name, or that of a file in it, is not UTF-8: it is not synchronised",
        session=ref.session_id,
        path=ref.path,
        hint="rename it to a name in UTF-8",
    )
