"""Reporting of sessions with a damaged version that is held back, on this device or on others."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from sessionary.errors import Corrupt
from sessionary.layouts.base import PartKind
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.heads import Head, Mark
from sessionary.sync.report import Hold, Outcome, SyncStatus, Undo, Where
from sessionary.sync.state import Held

LONGEST = 300
"""Most characters of a reason in a head."""


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
        layout: the layout of the session.
        ref: the session.
        head: the remote head.
        device: the name of this device, if known.
        held: local files whose version is held back.
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


def taken_back(layout: SyncLayout, name: str, kind: PartKind, before: int, after: int) -> bool:
    """True if a rewritten journal is a conversation, or became shorter.

    Other journals are reordered whenever two devices have written: that loses nothing.
    """
    if kind is not PartKind.JOURNAL:
        return False
    return layout.rule(name).policy is Policy.FORK or after < before


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
    return f"settle it on that device; if it is gone for good, {resolve} mine` ends it"
