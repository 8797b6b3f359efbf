"""What a remote shows of a session, compared with what was agreed about it.

What was agreed is what the remote had. It need not have it still: a store may have been emptied, or put back to an
earlier state, and a replica that lags shows a state that was. Heads are never removed, so one that is missing was lost.
Of an earlier state nobody can tell by looking which of the two it is: the swap of a push decides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sessionary.disk.fs import Fs, stat_or_none
from sessionary.errors import SessionaryError
from sessionary.layouts.sync import SyncLayout
from sessionary.model import SessionRef
from sessionary.sync import bundles
from sessionary.sync.heads import decode, encode, follows, is_older, kind_of
from sessionary.sync.local_files import LocalPart, match
from sessionary.sync.remote import HeadRecord
from sessionary.sync.report import SyncStatus
from sessionary.sync.rules import Rules
from sessionary.sync.state import SyncedState

LOST = "it was there, and the remote has lost it; a push sends it again"
PUT_BACK = "the remote shows an earlier state than it had; a push sends it again, if it is not merely late"


class Shown(NamedTuple):
    """What a remote shows of a session: its head, or that there is none."""

    record: HeadRecord | None


def shown(heads: Mapping[str, HeadRecord] | None, name: str) -> Shown | None:
    """What a list shows of a session; None if there is no list."""
    return None if heads is None else Shown(heads.get(name))


def is_later(record: HeadRecord | None, agreed: SyncedState) -> bool:
    """True for what was agreed, and for a head that came of it: the business of a pull.

    Raises:
        Corrupt, Unsupported: the head cannot be read.
    """
    if record is None:
        return False
    return record.etag == agreed.etag or follows(decode(record.name, record.data), agreed.head)


def is_before(record: HeadRecord | None, agreed: SyncedState) -> bool:
    """True if the remote shows nothing any more, or a state before the agreed one. What cannot be read is neither."""
    if record is None:
        return True
    try:
        return record.etag != agreed.etag and is_older(decode(record.name, record.data), agreed.head)
    except SessionaryError:
        return False


def at_least(record: HeadRecord, agreed: SyncedState | None) -> HeadRecord:
    """A head as it was read, or the agreed one if that came later: a store may show a state that was."""
    if agreed is None or not is_before(record, agreed):
        return record
    return HeadRecord(record.name, encode(agreed.head), agreed.etag)


def is_same(fs: Fs, mine: Mapping[str, LocalPart], agreed: SyncedState) -> bool:
    """True if all that is here is as it was agreed.

    Raises:
        StorageFailed: a file cannot be read.
    """
    return not agreed.head.deleted and all(
        match(fs, here, agreed.pieces.get(part), agreed.seen.get(part)).same for part, here in mine.items()
    )


def is_whole(fs: Fs, layout: SyncLayout, rules: Rules, agreed: SyncedState) -> bool:
    """False if the session is here without a file that was agreed on: it is to come back."""
    head = agreed.head
    if head.deleted or stat_or_none(fs, agreed.folder) is None:
        return True
    ref = SessionRef(head.kind, head.session, agreed.folder, head.project)
    return all(
        stat_or_none(fs, layout.path_of(ref, part.name)) is not None
        for part in head.parts
        if rules.carries(kind_of(part)) and part.name != bundles.NAME
    )


def standing_of(
    record: HeadRecord | None,
    agreed: SyncedState | None,
    *,
    same: bool,
    whole: bool,
) -> tuple[SyncStatus, str]:
    """How a session that is here stands, and why.

    Args:
        record: its head, as the remote shows it.
        agreed: what was agreed.
        same: all that is here is as it was agreed.
        whole: all that was agreed is here.

    Raises:
        Corrupt, Unsupported: the head cannot be read.
    """
    if agreed is None:
        if record is not None:
            decode(record.name, record.data)  # of what cannot be read, or is newer, nothing can be told
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
