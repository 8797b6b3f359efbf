"""Comparison of what a remote shows of a session with the agreed state.

The agreed state is what the remote had. It may not have it any more: a store may have been emptied or restored to an
earlier state, and a lagging replica shows an earlier state. Heads are never removed, so a missing one was lost. For
an earlier state it is unknown which of the two it is: the swap of a push decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sessionary.disk.fs import Fs, stat_or_none
from sessionary.errors import SessionaryError
from sessionary.layouts.sync import SyncLayout
from sessionary.sync import bundles
from sessionary.sync.heads import decode, encode, follows, is_older, kind_of
from sessionary.sync.local_files import LocalPart, match
from sessionary.sync.remote import HeadRecord
from sessionary.sync.report import SyncStatus
from sessionary.sync.rules import Rules
from sessionary.sync.state import SyncedState

LOST = "the remote has lost it; a push sends it again"
PUT_BACK = "the remote shows an earlier state than before; a push sends it again, unless it is only late"


class Shown(NamedTuple):
    """The head of a session as a remote shows it, or None."""

    record: HeadRecord | None


def shown(heads: Mapping[str, HeadRecord] | None, name: str) -> Shown | None:
    """Return what a list shows of a session; None without a list."""
    return None if heads is None else Shown(heads.get(name))


def is_later(record: HeadRecord | None, agreed: SyncedState) -> bool:
    """True for the agreed head and its successors, which are left to a pull.

    Raises:
        Corrupt, Unsupported: the head cannot be read.
    """
    if record is None:
        return False
    return record.etag == agreed.etag or follows(decode(record.name, record.data), agreed.head)


def is_before(record: HeadRecord | None, agreed: SyncedState) -> bool:
    """True if the remote shows nothing, or an ancestor of the agreed state. False for an unreadable head."""
    if record is None:
        return True
    try:
        return record.etag != agreed.etag and is_older(decode(record.name, record.data), agreed.head)
    except SessionaryError:
        return False


def at_least(record: HeadRecord, agreed: SyncedState | None) -> HeadRecord:
    """Return the head as read, or the agreed one if it is later: a store may show an earlier state."""
    if agreed is None or not is_before(record, agreed):
        return record
    return HeadRecord(record.name, encode(agreed.head), agreed.etag)


def is_same(fs: Fs, mine: Mapping[str, LocalPart], agreed: SyncedState) -> bool:
    """True if all local files are as agreed."""
    return not agreed.head.deleted and all(
        match(fs, here, agreed.pieces.get(part), agreed.seen.get(part)).same for part, here in mine.items()
    )


def is_whole(fs: Fs, layout: SyncLayout, rules: Rules, agreed: SyncedState) -> bool:
    """False if the session is here without an agreed file, which is to be restored."""
    head = agreed.head
    if head.deleted or stat_or_none(fs, agreed.folder) is None:
        return True
    return all(
        stat_or_none(fs, layout.path_of(agreed.ref(), part.name)) is not None
        for part in head.parts
        if rules.carries(kind_of(part)) and part.name != bundles.NAME
    )


def standing_of(
    record: HeadRecord | None, agreed: SyncedState | None, *, same: bool, whole: bool
) -> tuple[SyncStatus, str]:
    """Return the status of a local session, and the reason.

    Args:
        record: its head, as the remote shows it.
        same: all local files are as agreed.

    Raises:
        Corrupt, Unsupported: the head cannot be read.
    """
    if agreed is None:
        if record is not None:
            decode(record.name, record.data)  # raises if it is unreadable, or newer
        return (SyncStatus.NEVER if record is None else SyncStatus.BEHIND), ""
    if record is None:
        return SyncStatus.NEVER, LOST
    if record.etag != agreed.etag:
        head = decode(record.name, record.data)
        if is_older(head, agreed.head):
            return SyncStatus.AHEAD, PUT_BACK
        return (SyncStatus.BEHIND if same and follows(head, agreed.head) else SyncStatus.DIVERGED), ""
    if same and not whole:
        return SyncStatus.BEHIND, ""
    return (SyncStatus.IN_STEP if same else SyncStatus.AHEAD), ""
