"""Report of a synchronisation, session by session."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from sessionary.errors import Corrupt, Invalid
from sessionary.layouts.sync import SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.heads import Head, Mark, place_of
from sessionary.sync.remote import HeadRecord
from sessionary.sync.retry import Cost
from sessionary.sync.rules import Rules
from sessionary.sync.state import Held

FOR_USER = "changed on two devices; merge both versions, then run `resolve`"

LONGEST = 300
"""Most characters of a reason in a head."""


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
    """The earlier generation of a session on the remote that restores the lines that a push or pull removed."""

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

    @property
    def is_damaged(self) -> bool:
        """True if a file is held back that a pull does not restore."""
        return any(not hold.is_behind for hold in self.held)


@dataclass(slots=True)
class Report:
    """Result of a push or pull: the outcome of each session, and the cost."""

    outcomes: list[Outcome] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)

    def of(self, *standings: SyncStatus) -> list[Outcome]:
        """Return the outcomes with these statuses."""
        return [outcome for outcome in self.outcomes if outcome.standing in standings]

    def by_status(self) -> dict[SyncStatus, list[Outcome]]:
        """The outcomes by their statuses, in the order of `SyncStatus`; those of each by project and id."""
        found = sorted(self.outcomes, key=lambda one: (one.project or "", one.session_id))
        by_status = {status: [one for one in found if one.standing is status] for status in SyncStatus}
        return {status: some for status, some in by_status.items() if some}


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
    """Yield the sessions of kinds that only newer versions know, as held back."""
    for record in records:
        place = place_of(record.data)
        if place is not None and place.kind not in known and rules.admits(place.project):
            note = f"sessions of the kind {place.kind!r} need a newer version of Sessionary"
            yield Outcome(place.session, place.project, SyncStatus.HELD_BACK, note, kind=place.kind)


def no_text(ref: SessionRef) -> Invalid:
    """Return the error of a session that cannot be synchronised: heads and the names in them are UTF-8."""
    return Invalid(
        "its name, or that of a file in it, is not UTF-8: it is not synchronised",
        session=ref.session_id,
        path=ref.path,
        hint="rename it to a name in UTF-8",
    )


# -- versions that are held back


def marks_of(
    head: Head, device: str, held: Mapping[str, Held], ended: Collection[str] = ()
) -> dict[str, Mark]:
    """Return the marks of the next head: those of other devices unchanged, ours as given.

    For files in `ended`, marks of other devices are removed.
    """
    others = {name: mark for name, mark in head.held.items() if mark.device != device and name not in ended}
    ours = {name: Mark(device, one.why[:LONGEST]) for name, one in held.items()}
    return {**ours, **others}


def holds_of(
    layout: SyncLayout,
    ref: SessionRef,
    head: Head,
    device: str | None,
    held: Mapping[str, Held],
    refused: Mapping[str, Held] | None = None,
    other: Callable[[str], str | None] = lambda name: None,
) -> tuple[Hold, ...]:
    """Return what is held back of a session: here, on the remote, and on other devices.

    Args:
        device: the name of this device, if known.
        refused: files whose remote version is not taken.
        other: returns the path of such a version beside the file, if any.
    """
    found = [
        Hold(name, Where.HERE, one.why, layout.path_of(ref, name), is_behind=one.is_behind)
        for name, one in held.items()
    ]
    found += [
        Hold(name, Where.REMOTE, one.why, layout.path_of(ref, name), other(name))
        for name, one in (refused or {}).items()
    ]
    found += [
        Hold(name, Where.ELSEWHERE, mark.why, layout.path_of(ref, name))
        for name, mark in head.held.items()
        if mark.device != device
    ]
    return tuple(sorted(found, key=lambda hold: (hold.file, hold.where.value)))


def with_holds(outcome: Outcome, holds: Sequence[Hold], *, sent: bool = False) -> Outcome:
    """Return the outcome with what is held back. Such a session is never reported as in step.

    `sent`: other files of it were sent.
    """
    if not holds:
        return outcome
    damaged = [hold for hold in holds if not hold.is_behind]
    is_ours = any(hold.where is not Where.ELSEWHERE for hold in damaged)
    standing = outcome.standing
    if is_ours or (damaged and standing is SyncStatus.IN_STEP):
        standing = SyncStatus.HELD_BACK
    elif not damaged:
        standing = SyncStatus.BEHIND
    rest = "the rest was sent" if sent and is_ours else ""
    note = "; ".join(filter(None, (outcome.note, rest, *map(_words, holds))))
    error = outcome.error
    if standing is SyncStatus.HELD_BACK and error is None:
        error = Corrupt(
            note,
            operation="sync",
            path=damaged[0].path,
            session=outcome.session_id,
            hint=_remedy(outcome.session_id, damaged),
        )
    return replace(outcome, standing=standing, note=note, error=error, held=tuple(holds))


def with_undo(outcome: Outcome, undo: Undo | None, note: str) -> Outcome:
    """Return the outcome with a note about rewound lines, and how to restore them."""
    if not note:
        return outcome
    return replace(outcome, note="; ".join(filter(None, (outcome.note, note))), undo=undo)


def _words(hold: Hold) -> str:
    if hold.is_behind:
        return f"{hold.file} was restored from an older copy and lacks lines that were sent; a pull restores them"
    if hold.where is Where.HERE:
        return f"{hold.file} is held back: {hold.why}"
    if hold.where is Where.ELSEWHERE:
        return f"another device holds its {hold.file} back: {hold.why}"
    beside = f"; it is kept beside as {os.path.basename(hold.other)}" if hold.other else ""
    return f"the remote's {hold.file} is held back: {hold.why}{beside}"


def _remedy(session: str, damaged: Sequence[Hold]) -> str:
    resolve = f"`sessionary sync resolve {session} --keep"
    if any(hold.where is Where.HERE for hold in damaged):
        return (
            f"repair it, or {resolve} theirs` takes the version of the remote and keeps yours beside it; "
            f"{resolve} mine` sends yours as it is"
        )
    if any(hold.where is Where.REMOTE for hold in damaged):
        return (
            f"{resolve} mine` sends the version here; "
            f"{resolve} theirs` takes that of the remote and keeps yours beside it"
        )
    return f"resolve it on that device; if it no longer exists, run {resolve} mine`"
